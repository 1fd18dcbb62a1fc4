import { Button } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { pipelinePath } from "../../api/queries";
import type { Column, Problem } from "../../api/types";
import { useStream } from "../../api/useStream";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { Notice } from "../../parts/Notice";
import { type Row, RowTable } from "../../parts/RowTable";
import classes from "./Panels.module.css";
import { Progress } from "./Progress";
import type { DraftAddress } from "./usePreview";

interface Trial { passes: boolean; reason: string | null; errors: Problem[]; sinks: { node: string; columns: Column[]; rows: Row[] }[] }
interface Props { id: string; letter: string; draft: DraftAddress; valid: boolean }

/** The text in the editor, run on one dead letter: whether the record passes, and its rows. */
export function LetterPanel({ id, letter, draft, valid }: Props) {
  const stream = useStream();
  const [trial, setTrial] = useState<{ text: string; result: Trial } | null>(null);
  function start(): void {
    const { text } = draft.body;
    setTrial(null);
    stream.start(`${pipelinePath(id)}/dead-letters/${encodeURIComponent(letter)}/try`, { text }, (name, facts) => {
      if (name === "done") setTrial({ text, result: facts });
    });
  }
  return (
    <>
      <div className={classes.tools}>
        <Button size="xs" loading={stream.open} disabled={!valid} onClick={start}>Test on this letter</Button>
        <span className="mono quiet">{letter.slice(0, 8)}</span>
        <Progress stream={stream} waiting="Runs the text on the record…" />
      </div>
      {stream.error != null && <div className={classes.body}><ErrorNotice error={stream.error} /></div>}
      {!trial && !stream.open && stream.error == null && <p className={classes.hint}>Mend the text, test it on the record that failed, apply, and replay the dead letter.</p>}
      {trial && <Result id={id} letter={letter} trial={trial.result} current={trial.text === draft.body.text} />}
    </>
  );
}

function Result({ id, letter, trial, current }: { id: string; letter: string; trial: Trial; current: boolean }) {
  const rows = trial.sinks.reduce((sum, each) => sum + each.rows.length, 0);
  const title = trial.passes ? (rows ? "The record passes" : "The record passes, and no sink receives a row") : trial.reason ? "The record cannot be replayed" : "The record still fails";
  return (
    <div className={classes.body}>
      <Notice tone={trial.passes ? "good" : "bad"} role="status" title={current ? title : `${title} (with an earlier text)`} actions={trial.passes && <Link href={`/pipelines/${id}/dead-letters?letter=${letter}`}>To the dead letters</Link>}>
        {trial.reason}
        {trial.errors.map((each, index) => <div key={index}>{each.message} <code className="mono">{each.code}</code></div>)}
        {trial.passes && "Apply the text, then replay the dead letter."}
      </Notice>
      {trial.sinks.filter((each) => each.rows.length).map((each) => (
        <div key={each.node}>
          <p className={classes.summary} style={{ padding: "10px 2px 4px" }}>{each.node} receives</p>
          <RowTable label={`Rows of ${each.node}`} columns={each.columns} rows={each.rows} />
        </div>
      ))}
    </div>
  );
}

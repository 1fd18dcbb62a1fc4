import { Button, Select } from "@mantine/core";
import { useState } from "react";
import type { CheckedNode } from "../../api/types";
import { plural } from "../../format/numbers";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { InlineCode } from "../../parts/InlineCode";
import { Notice } from "../../parts/Notice";
import { RowTable } from "../../parts/RowTable";
import classes from "./Panels.module.css";
import { Progress } from "./Progress";
import { type DraftAddress, type Ending, type Shown, usePreview } from "./usePreview";

interface Props { draft: DraftAddress; nodes: Record<string, CheckedNode>; valid: boolean }

const LIMITS = ["20", "100", "1000"];
const REASONS: Record<Ending["reason"], string> = {
  rows: "the limit of rows is reached", end: "the input has no more rows now", time: "the time is over",
  size: "the limit of 16 MB is reached", cancelled: "stopped", error: "an error",
};

/** Rows of a node of the text in the editor, saved or not. */
export function PreviewPanel({ draft, nodes, valid }: Props) {
  const preview = usePreview();
  const names = Object.keys(nodes);
  const [chosen, setChosen] = useState<string | null>(null);
  const [limit, setLimit] = useState("100");
  const node = chosen !== null && names.includes(chosen) ? chosen : (names.at(-1) ?? null);
  return (
    <>
      <form className={classes.tools} onSubmit={(event) => { event.preventDefault(); if (node) preview.preview(draft, node, Number(limit)); }}>
        <Select size="xs" aria-label="Node" className={classes.node} value={node} onChange={setChosen} allowDeselect={false} comboboxProps={{ withinPortal: true }} data={names.map((each) => ({ value: each, label: `${each} · ${nodes[each]!.kind}` }))} disabled={!names.length} />
        <Select size="xs" aria-label="Rows" w={110} value={limit} onChange={(value) => setLimit(value ?? "100")} allowDeselect={false} data={LIMITS.map((each) => ({ value: each, label: `${each} rows` }))} />
        {preview.open ? (
          <Button size="xs" variant="default" onClick={preview.stop}>Stop</Button>
        ) : (
          <Button size="xs" type="submit" disabled={!valid || !node}>Preview</Button>
        )}
        <Progress stream={preview} waiting="Starts a Spark session, or reads the sources from the earliest offset…" />
      </form>
      {preview.error != null && <div className={classes.body}><ErrorNotice error={preview.error} /></div>}
      {preview.shown ? <Result shown={preview.shown} changed={preview.shown.text !== draft.body.text} /> : !preview.open && preview.error == null && <p className={classes.hint}>A preview runs the text as it is, without saving. It reads the sources from the earliest offset, and writes to no sink.</p>}
    </>
  );
}

function Result({ shown, changed }: { shown: Shown; changed: boolean }) {
  const { ending } = shown;
  return (
    <>
      <p className={classes.summary} role="status">
        <strong>{plural(shown.rows.length, "row")}</strong> of {shown.node}
        {ending && ` in ${ending.seconds} s · ${REASONS[ending.reason]}`}
        {changed && <span className={classes.old}> · of an earlier text</span>}
      </p>
      {shown.columns.length > 0 && <RowTable label={`Rows of ${shown.node}`} columns={shown.columns} rows={shown.rows} />}
      {ending?.errors.map((each, index) => (
        <div key={index} className={classes.body}>
          <Notice tone="bad" title={each.message}>{each.line ? `Line ${each.line}. ` : ""}{each.hint && <InlineCode text={each.hint} />}</Notice>
        </div>
      ))}
      {ending !== null && ending.dead_letters > 0 && (
        <div className={classes.body}>
          <Notice tone="warn" title={`${plural(ending.dead_letters, "record")} would become dead letters`}>
            <ul className={classes.letters}>
              {ending.letters.map((each) => (
                <li key={each.id}>{each.node}: {each.message} {each.payload && <code className="mono">{each.payload.slice(0, 200)}</code>}</li>
              ))}
            </ul>
          </Notice>
        </div>
      )}
    </>
  );
}

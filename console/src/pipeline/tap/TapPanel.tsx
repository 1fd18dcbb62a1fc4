import { Button, CloseButton } from "@mantine/core";
import { useEffect } from "react";
import { count } from "../../format/numbers";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { RowTable } from "../../parts/RowTable";
import { Time } from "../../parts/Time";
import classes from "./TapPanel.module.css";
import { useTap } from "./useTap";

interface Props { id: string; node: string; runs: boolean; onClose: () => void }

/** Rows of a node of the run, as they flow. Freeze stops the drawing, not the tap. */
export default function TapPanel({ id, node, runs, onClose }: Props) {
  const tap = useTap(id, node);
  const { last, error, open } = tap;
  useEffect(() => {
    if (runs) tap.listen();
    return tap.stop;
  }, [id, node, runs]);
  return (
    <section className={`surface ${classes.panel}`} aria-label={`Rows of ${node}`}>
      <header>
        <h2>Rows of {node}</h2>
        <span className={classes.facts} role="status">
          {last ? (
            <>batch {count(last.batch)} · <Time at={last.time} />{tap.frozen && ` · frozen, ${count(tap.passed)} batches since`}</>
          ) : open ? "Waits for the next batch…" : runs ? "" : "The pipeline does not run."}
        </span>
        {open && <Button size="xs" variant="default" onClick={tap.frozen ? tap.thaw : tap.freeze}>{tap.frozen ? "Continue" : "Freeze"}</Button>}
        {!open && runs && <Button size="xs" variant="default" onClick={tap.listen}>Listen again</Button>}
        <CloseButton aria-label="Close the tap" onClick={onClose} />
      </header>
      {tap.missed && <p className={classes.missed}>A batch has no rows here: {tap.missed}</p>}
      {error != null && runs && <div className={classes.body}><ErrorNotice error={error} /></div>}
      {last && (last.rows.length ? <RowTable label={`Rows of ${node}`} columns={last.columns} rows={last.rows} /> : <p className={classes.missed}>The batch has no rows at this node.</p>)}
      {last && <p className={classes.note}>The first rows of at most one batch a second. A source has the columns and rows that the pipeline reads.</p>}
    </section>
  );
}

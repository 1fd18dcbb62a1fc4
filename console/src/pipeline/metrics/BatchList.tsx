import { Button } from "@mantine/core";
import { type Batch, useBatches } from "../../api/metrics";
import { color } from "../../charts/series";
import { seconds } from "../../charts/quantities";
import { count } from "../../format/numbers";
import { Time } from "../../parts/Time";
import classes from "./Metrics.module.css";
import { PHASES } from "./phases";

/** The last batches of a pipeline, with the shares of their phases. */
export function BatchList({ id }: { id: string }) {
  const pages = useBatches(id);
  const batches = pages.data?.pages.flatMap((page) => page.batches) ?? [];
  if (!batches.length) return null;
  const longest = Math.max(...batches.map((each) => each.seconds));
  return (
    <section className={`surface ${classes.batches}`} aria-labelledby="batches">
      <h2 id="batches">What did the last batches do?</h2>
      <div className={classes.scroll} tabIndex={0} role="region" aria-label="Batches">
        <table>
          <thead>
            <tr>
              <th scope="col">Start</th>
              <th scope="col">Query</th>
              <th scope="col" data-number>Batch</th>
              <th scope="col" data-number>Rows written</th>
              <th scope="col" data-number>Duration</th>
              <th scope="col">Phases</th>
              <th scope="col">Watermark</th>
            </tr>
          </thead>
          <tbody>
            {batches.map((each) => (
              <tr key={each.entry}>
                <td><Time at={iso(each.began)} /></td>
                <td className={classes.query} title={each.query}>{each.query}</td>
                <td data-number className="number">{each.batch}</td>
                <td data-number className="number" title={sinkText(each)}>{count(each.rows)}</td>
                <td data-number className="number">{seconds(each.seconds)}</td>
                <td><PhaseBar batch={each} longest={longest} /></td>
                <td>{each.watermark === null ? <span className="quiet">–</span> : <Time at={iso(each.watermark)} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages.hasNextPage && (
        <Button size="xs" variant="default" loading={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>Earlier batches</Button>
      )}
    </section>
  );
}

function PhaseBar({ batch, longest }: { batch: Batch; longest: number }) {
  const text = PHASES.map(([phase, label]) => `${label} ${seconds(batch.phases[phase] ?? 0)}`).join(", ");
  return (
    <span className={classes.bar} role="img" aria-label={text} title={text} style={{ width: `${(batch.seconds / longest) * 100}%` }}>
      {PHASES.map(([phase], index) => (
        <i key={phase} style={{ flexGrow: batch.phases[phase] ?? 0, background: color(index) }} />
      ))}
    </span>
  );
}

function sinkText({ sinks }: Batch): string {
  return Object.entries(sinks).map(([name, part]) => `${name}: ${count(part.rows)}`).join(", ");
}

const iso = (time: number) => new Date(time * 1000).toISOString();

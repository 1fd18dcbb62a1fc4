import { memo, type MouseEvent, type Ref } from "react";
import { Link, useLocation } from "wouter";
import type { Values } from "../api/metrics";
import type { Summary } from "../api/types";
import { Sparkline } from "../charts/Sparkline";
import { isStopping } from "../format/health";
import { count, rate } from "../format/numbers";
import { StateBadge } from "../parts/StateBadge";
import { Time } from "../parts/Time";
import classes from "./PipelineList.module.css";
import { ReasonText } from "./ReasonText";

interface Props { pipeline: Summary; throughput?: Values; index?: number; ref?: Ref<HTMLTableRowElement> }

/** One pipeline of the list. A click anywhere opens the pipeline. `index` is that of a row among many. */
export const PipelineRow = memo(function PipelineRow({ pipeline, throughput, index, ref }: Props) {
  const [, navigate] = useLocation();
  const { health, id } = pipeline;
  const address = `/pipelines/${id}`;
  const stopping = isStopping(pipeline);

  function open(event: MouseEvent): void {
    const ownTarget = (event.target as HTMLElement).closest("a, button");
    if (!ownTarget && window.getSelection()?.isCollapsed) navigate(address);
  }

  return (
    <tr onClick={open} className={classes.row} ref={ref} data-index={index} aria-rowindex={index === undefined ? undefined : index + 2}>
      <td className={classes.state}>
        <StateBadge state={stopping ? "stopping" : health.state} />
      </td>
      <th scope="row" className={classes.name}>
        <Link href={address}>{pipeline.name}</Link>
        <span className={classes.file}>
          {pipeline.file}
          {pipeline.version !== null && ` · v${pipeline.version}`}
          {pipeline.changed && <em title="The file differs from the applied version"> · changed</em>}
        </span>
      </th>
      <td className={classes.reason}>
        <ReasonText health={health} />
      </td>
      <td data-label="Since" className={classes.since}>
        <Time at={health.since} />
      </td>
      <td data-label="Rows/s" data-number className={`number ${pipeline.rows_per_second === 0 ? "quiet" : ""}`}>
        <span className={classes.rate} title="Rows per second; the line is the last hour">
          <Sparkline values={throughput} width={64} height={18} />
          {rate(pipeline.rows_per_second)}
        </span>
      </td>
      <Value label="Lag" text={pipeline.lag === null ? "–" : count(pipeline.lag)} quiet={!pipeline.lag} />
      <Value label="Dead letters" text={count(pipeline.dead_letters)} quiet={!pipeline.dead_letters} href={pipeline.dead_letters ? `${address}/dead-letters` : undefined} />
    </tr>
  );
});

interface ValueProps { label: string; text: string; quiet: boolean; href?: string }

function Value({ label, text, quiet, href }: ValueProps) {
  return (
    <td data-label={label} data-number className={`number ${quiet ? "quiet" : ""}`}>
      {href ? <Link href={href} className={classes.letters}>{text}</Link> : text}
    </td>
  );
}

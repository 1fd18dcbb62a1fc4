import { Link } from "wouter";
import type { Problem, Summary } from "../api/types";
import { isStopping, isUnhealthy, tone } from "../format/health";
import { count, rate } from "../format/numbers";
import { BackIcon } from "../parts/icons";
import { Notice } from "../parts/Notice";
import { StateBadge } from "../parts/StateBadge";
import { Time } from "../parts/Time";
import { Actions } from "./Actions";
import { Reason } from "./Reason";
import classes from "./PipelineHeader.module.css";

/** The name, the state and the numbers of a pipeline, its actions, and the reason of its state. */
export function PipelineHeader({ pipeline, errors }: { pipeline: Summary; errors: Problem[] }) {
  const { health } = pipeline;
  const stopping = isStopping(pipeline);
  return (
    <header>
      <Link href="/" className={classes.back}>
        <BackIcon /> Pipelines
      </Link>
      <div className={classes.head}>
        <div className={classes.title}>
          <h1 title={pipeline.name}>{pipeline.name}</h1>
          <StateBadge large state={stopping ? "stopping" : health.state} label={stopping ? "stopping…" : undefined} />
        </div>
        <Actions pipeline={pipeline} errors={errors} />
      </div>
      <dl className={classes.facts}>
        <Fact label="Since">{health.since ? <Time at={health.since} /> : "–"}</Fact>
        <Fact label="Rows/s">{rate(pipeline.rows_per_second)}</Fact>
        <Fact label="Lag">{pipeline.lag === null ? "–" : count(pipeline.lag)}</Fact>
        <Fact label="Dead letters">{count(pipeline.dead_letters)}</Fact>
        <Fact label="Version">{pipeline.version === null ? "–" : `v${pipeline.version}`}{pipeline.changed && <Link href={`/pipelines/${pipeline.id}/editor`} className={classes.changed}>file changed</Link>}</Fact>
        {pipeline.share !== null && <Fact label="Share">{pipeline.share}{pipeline.ejected !== null && " (runs alone)"}</Fact>}
        <Fact label="File"><span className="mono">{pipeline.file}</span></Fact>
      </dl>
      {pipeline.ejected !== null && <Notice tone="warn" title={pipeline.ejected} />}
      {health.reason && <Reason health={health} id={pipeline.id} />}
      {!health.reason && errors[0] && !isUnhealthy(health.state) && (
        <Notice tone={tone("failed")} title={errors[0].message}>
          The file has errors. <Link href={`/pipelines/${pipeline.id}/editor`}>Open the editor</Link>
        </Notice>
      )}
    </header>
  );
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd className="number">{children}</dd>
    </div>
  );
}

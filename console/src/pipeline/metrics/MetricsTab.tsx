import { SegmentedControl } from "@mantine/core";
import { useSearchParams } from "wouter";
import { useMetrics } from "../../api/metrics";
import type { Detail } from "../../api/types";
import { Empty } from "../../parts/Empty";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { Loading } from "../../parts/Loading";
import { BatchList } from "./BatchList";
import { Charts } from "./Charts";
import classes from "./Metrics.module.css";
import { RANGES, rangeOf } from "./ranges";

/** The metrics of a pipeline over a time range of the address, and its last batches. */
export default function MetricsTab({ detail }: { detail: Detail }) {
  const [search, setSearch] = useSearchParams();
  const range = rangeOf(search.get("range"));
  const metrics = useMetrics(detail.id, range);
  return (
    <>
      <div className={classes.tools}>
        <SegmentedControl size="xs" aria-label="Time range" value={range} onChange={(next) => setSearch({ range: next }, { replace: true })} data={RANGES.map(([value, label]) => ({ value, label }))} />
        {metrics.data && <span className="quiet">one value per {step(metrics.data.resolution)}</span>}
      </div>
      {metrics.isError && !metrics.data && <ErrorNotice error={metrics.error} onRetry={() => metrics.refetch()} />}
      {metrics.isPending && <Loading lines={3} height={230} />}
      {metrics.data && (metrics.data.series.length > 0 ? <Charts detail={detail} history={metrics.data} /> : <NoMetrics />)}
      <BatchList id={detail.id} />
    </>
  );
}

function NoMetrics() {
  return (
    <div className="surface">
      <Empty title="No metrics in this time">
        The server keeps the metrics of each run for 30 days. The first ones appear ten seconds after a start.
      </Empty>
    </div>
  );
}

function step(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}

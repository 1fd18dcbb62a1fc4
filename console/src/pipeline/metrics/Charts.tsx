import { NativeSelect, SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import type { MetricHistory } from "../../api/metrics";
import { useRuns } from "../../api/queries";
import type { Detail } from "../../api/types";
import { Chart } from "../../charts/Chart";
import { DELAY, DURATION, LETTERS, lagIn, ROWS_PER_SECOND, SIZE, STATE_ROWS } from "../../charts/quantities";
import { linesOf, marksOf, perStep, phaseLines, timesOf } from "./lines";
import classes from "./Metrics.module.css";

interface Props { detail: Detail; history: MetricHistory }

/** The charts of a pipeline. The title of each one is the question that the chart answers. */
export function Charts({ detail, history }: Props) {
  const runs = useRuns(detail.id);
  const marks = useMemo(() => marksOf(runs.data), [runs.data]);
  const times = useMemo(() => timesOf(history), [history]);
  const names = detail.nodes.map((each) => each.name);
  const lag = history.series.find((each) => each.metric === "lag");
  const shared = { times, marks };
  return (
    <div className={classes.grid}>
      <Chart {...shared} title="How many rows does each node read or write?" quantity={ROWS_PER_SECOND} lines={linesOf(history, "rows_per_second", names)} empty="No source has read rows." />
      <Chart {...shared} title="How far behind are the sources?" quantity={lagIn(lag?.unit ?? "records")} lines={linesOf(history, "lag", names)} empty="No source reports its lag." />
      <Phases {...shared} history={history} />
      <Chart {...shared} title="How far is the watermark behind the clock?" quantity={DELAY} lines={linesOf(history, "watermark_delay_seconds", names)} empty="No query has a watermark. Windows and joins of streams need one." />
      <State {...shared} history={history} names={names} />
      <Chart {...shared} title="When do records fail, and where?" quantity={LETTERS} shape="bars" lines={perStep(linesOf(history, "dead_letters_per_second", names, true), history.resolution)} empty="No dead letters in this time." />
    </div>
  );
}

interface PartProps { times: number[]; marks: ReturnType<typeof marksOf>; history: MetricHistory }

function Phases({ history, ...shared }: PartProps) {
  const queries = [...new Set(history.series.filter((each) => each.metric === "phase_seconds").map((each) => each.name!))];
  const [chosen, setChosen] = useState<string | null>(null);
  const query = chosen !== null && queries.includes(chosen) ? chosen : queries[0];
  const tools = queries.length > 1 && (
    <NativeSelect size="xs" className={classes.choice} aria-label="Query" value={query} onChange={(event) => setChosen(event.currentTarget.value)} data={queries} />
  );
  return <Chart {...shared} title="Where does the time of a batch go?" quantity={DURATION} shape="areas" lines={query === undefined ? [] : phaseLines(history, query)} empty="No batch in this time." tools={tools} />;
}

function State({ history, names, ...shared }: PartProps & { names: string[] }) {
  const [unit, setUnit] = useState("rows");
  const lines = linesOf(history, unit === "rows" ? "state_rows" : "state_bytes", names);
  const tools = lines.length > 0 && (
    <SegmentedControl size="xs" className={classes.choice} aria-label="Unit of the state" value={unit} onChange={setUnit} data={[{ value: "rows", label: "Rows" }, { value: "bytes", label: "Bytes" }]} />
  );
  return <Chart {...shared} title="How large is the state?" quantity={unit === "rows" ? STATE_ROWS : SIZE} lines={lines} empty="No query has a state. Windows, joins and deduplication keep one." tools={tools} />;
}

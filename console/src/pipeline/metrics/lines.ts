/** Lines of charts from the series of the history. */
import type { Metric, MetricHistory, MetricSeries } from "../../api/metrics";
import type { Run } from "../../api/types";
import type { Line, Mark } from "../../charts/series";
import { PHASES } from "./phases";

/** Returns the times of all values of a history. */
export function timesOf({ start, resolution, series, end }: MetricHistory): number[] {
  const length = series[0]?.values.length ?? Math.ceil((end - start) / resolution);
  return Array.from({ length }, (_, index) => start + index * resolution);
}

/** Returns the lines of a metric by node or query, in the order of names. Lines of zeros are left out on demand. */
export function linesOf(history: MetricHistory, metric: Metric, names: string[], without0 = false): Line[] {
  const order = (each: MetricSeries) => names.indexOf(each.name ?? "");
  return history.series
    .filter((each) => each.metric === metric && each.name !== null && (!without0 || each.values.some(Boolean)))
    .sort((one, other) => order(one) - order(other))
    .map((each) => ({ name: each.name!, values: each.values, most: each.most }));
}

/** Returns the phases of the batches of a query, in their order. */
export function phaseLines(history: MetricHistory, query: string): Line[] {
  const series = history.series.filter((each) => each.metric === "phase_seconds" && each.name === query);
  return PHASES.flatMap(([phase, label]) => {
    const found = series.find((each) => each.phase === phase);
    return found ? [{ name: label, values: found.values, most: found.most }] : [];
  });
}

/** Returns numbers per step in place of rates per second. */
export function perStep(lines: Line[], resolution: number): Line[] {
  return lines.map((line) => ({
    name: line.name,
    values: line.values.map((value) => (value === null ? null : Math.round(value * resolution * 100) / 100)),
  }));
}

/** Returns the starts and failures of runs as marks. */
export function marksOf(runs: Run[] | undefined): Mark[] {
  return (runs ?? []).flatMap((run) => {
    const version = run.pipeline_version === null ? "" : ` of version ${run.pipeline_version}`;
    const start = { time: seconds(run.began), label: `start${version}`, bad: false };
    const failed = run.ended !== null && (run.ending === "failed" || run.ending === "killed");
    return failed ? [start, { time: seconds(run.ended!), label: `run ${run.ending}`, bad: true }] : [start];
  });
}

const seconds = (time: string) => new Date(time).getTime() / 1000;

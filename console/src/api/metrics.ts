/** Metrics over time and batches, as `/api/v1/openapi.json` describes them. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, query } from "./client";
import { pipelinePath } from "./queries";

export type Metric =
  | "rows_per_second" | "bytes_per_second" | "dead_letters_per_second" | "lag" | "batches_per_second"
  | "batch_seconds" | "phase_seconds" | "watermark_delay_seconds" | "late_rows_per_second"
  | "state_rows" | "state_bytes" | "restarts_per_second";
export type Values = (number | null)[];
export interface MetricSeries {
  metric: Metric;
  unit: string;
  scope: "pipeline" | "node" | "query";
  name: string | null;
  phase: string | null;
  values: Values;
  least: Values;
  most: Values;
}
export interface MetricHistory { start: number; end: number; resolution: number; series: MetricSeries[] }
export interface Batch {
  entry: number;
  run: string;
  query: string;
  batch: number;
  began: number;
  seconds: number;
  phases: Record<string, number>;
  sinks: Record<string, { rows: number; bad: number; began: number; ended: number }>;
  rows: number;
  watermark: number | null;
  state_rows: number | null;
}
export interface BatchPage { batches: Batch[]; next: number | null }
export interface Throughput { id: string; start: number | null; values: Values }

export function useMetrics(id: string, window: string, metric?: Metric) {
  return useQuery({
    queryKey: ["metrics", id, window, metric],
    queryFn: ({ signal }) => api.get<MetricHistory>(`${pipelinePath(id)}/metrics${query({ window, series: metric })}`, signal),
    refetchInterval: 10_000,
    placeholderData: (earlier) => earlier,
  });
}

export function useBatches(id: string) {
  return useInfiniteQuery({
    queryKey: ["batches", id],
    queryFn: ({ pageParam, signal }) =>
      api.get<BatchPage>(`${pipelinePath(id)}/batches${query({ limit: 20, before: pageParam })}`, signal),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: (each) => ((each.state.data?.pages.length ?? 0) > 1 ? false : 5000),
  });
}

/** The rows per second of all pipelines in the last hour, by ID. */
export function useThroughput() {
  return useQuery({
    queryKey: ["throughput"],
    queryFn: ({ signal }) => api.get<Throughput[]>("/throughput", signal),
    refetchInterval: 30_000,
    select: byId,
  });
}

function byId(found: Throughput[]): Map<string, Values> {
  return new Map(found.map((each) => [each.id, each.values]));
}

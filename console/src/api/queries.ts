/** Queries and changes of pipelines, cached by TanStack Query. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, query } from "./client";
import type { Detail, Run, Summary, Version } from "./types";

export const pipelinePath = (id: string) => `/pipelines/${encodeURIComponent(id)}`;

export function useDetail(id: string) {
  return useQuery({
    queryKey: ["pipeline", id],
    queryFn: ({ signal }) => api.get<Detail>(pipelinePath(id), signal),
    refetchInterval: 2000,
  });
}

export function useVersions(id: string) {
  return useQuery({
    queryKey: ["versions", id],
    queryFn: ({ signal }) => api.get<Version[]>(`${pipelinePath(id)}/versions`, signal),
    refetchInterval: 15_000,
  });
}

const RUNS = 50;

export function useRuns(id: string) {
  return useInfiniteQuery({
    queryKey: ["runs", id],
    queryFn: ({ pageParam, signal }) =>
      api.get<Run[]>(`${pipelinePath(id)}/runs${query({ limit: RUNS, before: pageParam })}`, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.length < RUNS ? null : (page.at(-1)?.id ?? null)),
    select: (found) => found.pages.flat(),
    refetchInterval: (each) => ((each.state.data?.pages.length ?? 0) > 1 ? false : 5000),
  });
}

export type Action = "start" | "stop" | "restart";

export function useAction(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (action: Action) =>
      api.post<Summary>(`${pipelinePath(id)}/${action}`, action === "stop" ? undefined : { fresh: false }),
    onSettled: () => cache.invalidateQueries({ predicate: (each) => each.queryKey[1] === id }),
  });
}

/** `base` is the version that a text was made from. A newer one is an error, so that no change is lost. */
interface Application { text: string; note: string; fresh: boolean; base: number }

export function useApply(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: Application) => api.post<Version>(`${pipelinePath(id)}/apply`, body),
    onSuccess: () => cache.invalidateQueries({ predicate: (each) => each.queryKey[1] === id }),
  });
}

export function useRollBack(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ number, fresh, base }: { number: number; fresh: boolean; base: number }) =>
      api.post<Version>(`${pipelinePath(id)}/versions/${number}/roll-back`, { fresh, base }),
    onSuccess: () => cache.invalidateQueries({ predicate: (each) => each.queryKey[1] === id }),
  });
}

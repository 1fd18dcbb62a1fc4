import { keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, query } from "../../api/client";
import { pipelinePath } from "../../api/queries";
import type { Letters } from "../../api/types";

export interface Replayed { replayed: number; finished: number; failed: number; skipped: { node: string; reason: string; count?: number }[] }

const path = (id: string) => `${pipelinePath(id)}/dead-letters`;

/** Returns dead letters by pages, newest first. Each request is in the audit, so no page is loaded by itself. */
export function useLetters(id: string, node: string | null, code: string | null) {
  return useInfiniteQuery({
    queryKey: ["letters", id, node, code],
    queryFn: ({ pageParam, signal }) => api.get<Letters>(path(id) + query({ node, code, limit: 100, before: pageParam }), signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    select: ({ pages: [first, ...later] }) => ({ ...first!, letters: [first!, ...later].flatMap((page) => page.letters) }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}

function useChange<A, R>(id: string, change: (argument: A) => Promise<R>) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => cache.invalidateQueries({ queryKey: ["letters", id] }),
  });
}

export const useRemove = (id: string) => useChange(id, (ids: string[]) => api.post<{ removed: number }>(`${path(id)}/remove`, { ids }));

/** Replays dead letters; null is all of them. */
export const useReplay = (id: string) => useChange(id, (ids: string[] | null) => api.post<Replayed>(`${path(id)}/replay`, { ids }));

/** Connections of the server: their types, queries and changes. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "../api/client";
import type { Schema, Values } from "./schema";

export interface Permissions { users: string[] | null; pipelines: string[] | null; right: "edit" | "admin" }
export interface Connection {
  name: string;
  type: string;
  options: Values;
  /** The options whose values the server lists: table, or such as topic. */
  lists: string[];
  permissions: Permissions;
  author: string;
  time: string;
}
export interface Tested { tables: number | null }
/** A step of the access of a connection: reach, log in, read, write or create. */
export interface Step { step: string; state: "ok" | "failed" | "not-tried"; reason: string | null; errors: { message: string; hint: string | null }[] }

/** The title of the list of a connection: Tables, Topics, or Names of several options. Null without a list. */
export function listTitle({ lists }: Connection): string | null {
  const [first, ...others] = lists;
  if (!first) return null;
  return others.length ? "Names" : `${first[0]!.toUpperCase()}${first.slice(1)}s`;
}

export const connectionPath = (name: string) => `/connections/${encodeURIComponent(name)}`;

export function useConnections() {
  return useQuery({ queryKey: ["connections"], queryFn: ({ signal }) => api.get<Connection[]>("/connections", signal) });
}

/** The names of all connectors that are sources or sinks. */
export function useConnectorTypes() {
  return useQuery({
    queryKey: ["connector types"],
    staleTime: Infinity,
    queryFn: async ({ signal }) => {
      const found = await api.get<Record<"sources" | "sinks", { type: string }[]>>("/components", signal);
      return [...new Set([...found.sources, ...found.sinks].map((each) => each.type))].sort();
    },
  });
}

export function useSchema(type: string) {
  return useQuery({
    queryKey: ["connector schema", type],
    staleTime: Infinity,
    enabled: type !== "",
    queryFn: ({ signal }) => api.get<Partial<Record<"source" | "sink", Schema>>>(`/connections/types/${encodeURIComponent(type)}`, signal),
  });
}

interface Saved { name: string; type: string; options: Values; permissions?: Permissions }

/** Creates a connection, or changes an existing one. */
export function useSave(existing: boolean) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ name, type, options, permissions }: Saved) =>
      existing
        ? api.put<Connection>(connectionPath(name), { options, permissions })
        : api.post<Connection>("/connections", { name, type, options, permissions }),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["connections"] }),
  });
}

export function useDelete() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (name: string) => api.delete(connectionPath(name)),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["connections"] }),
  });
}

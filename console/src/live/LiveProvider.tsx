import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { api } from "../api/client";
import type { Summary } from "../api/types";
import { bySeverity } from "../format/health";
import { followPipelines, type Live } from "./sharedStream";

const LiveContext = createContext<Live>({ pipelines: null, connected: false, heard: 0 });

/** Passes the pipelines and the state of the connection to all pages. */
export function LiveProvider({ children }: { children: ReactNode }) {
  const [live, setLive] = useState<Live>({ pipelines: null, connected: false, heard: 0 });
  const cache = useQueryClient();
  useEffect(() => followPipelines(setLive), []);
  useEffect(() => {
    if (live.connected) void cache.invalidateQueries();
    else if (live.heard) void api.get("/me").catch(() => {}); // the session may have ended
  }, [live.connected, live.heard === 0, cache]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

export const useLive = (): Live => useContext(LiveContext);

/** Returns all pipelines, the worst first; null before the first message. */
export function usePipelines(): Summary[] | null {
  const { pipelines } = useLive();
  return useMemo(() => pipelines && [...pipelines.values()].sort(bySeverity), [pipelines]);
}

/** Returns a pipeline as the stream has last shown it. */
export function usePipeline(id: string): Summary | undefined {
  return useLive().pipelines?.get(id);
}

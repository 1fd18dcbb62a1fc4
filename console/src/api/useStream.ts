import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError } from "./client";
import { type OnEvent, readStream } from "./stream";
import type { Problem } from "./types";

interface Stream {
  /** Whether the stream is open. */
  open: boolean;
  /** The number of requests that start before; 0 at work. */
  position: number;
  error: unknown;
  start: (path: string, body: unknown, onEvent: OnEvent) => void;
  stop: () => void;
}

/** One stream at a time, which ends when the page is left. The event `failed` is an error. */
export function useStream(): Stream {
  const [state, setState] = useState<{ open: boolean; position: number; error: unknown }>({ open: false, position: 0, error: null });
  const current = useRef<AbortController>(null);
  const stop = useCallback(() => {
    current.current?.abort();
    setState((last) => ({ ...last, open: false, position: 0 }));
  }, []);
  useEffect(() => () => current.current?.abort(), []);

  const start = useCallback((path: string, body: unknown, onEvent: OnEvent) => {
    current.current?.abort();
    const abort = new AbortController();
    current.current = abort;
    setState({ open: true, position: 0, error: null });
    const handle = (name: string, facts: unknown) => {
      if (abort.signal.aborted) return;
      if (name === "failed") throw new ApiError(422, (facts as { errors: Problem[] }).errors);
      setState((last) => ({ ...last, position: name === "queued" ? (facts as { position: number }).position : 0 }));
      onEvent(name, facts as never);
    };
    readStream(path, body, handle, abort.signal)
      .catch((error: unknown) => error)
      .then((error) => {
        if (!abort.signal.aborted) setState({ open: false, position: 0, error: error ?? null });
        abort.abort();
      });
  }, []);
  return { ...state, start, stop };
}

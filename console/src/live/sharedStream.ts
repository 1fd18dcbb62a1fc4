/**
 * One stream for all tabs of a browser, because HTTP/1.1 permits six connections to a host.
 *
 * The tab that holds a lock opens the stream and passes all messages on. Without Web Locks, as on
 * plain HTTP beyond the machine, each tab has a stream of its own.
 */
import type { Summary } from "../api/types";
import { openStream } from "./eventSource";

const PATH = "/api/v1/events";
const NAME = "penstock-events";

export interface Live {
  pipelines: ReadonlyMap<string, Summary> | null;
  connected: boolean;
  /** The time of the last message, in milliseconds. */
  heard: number;
}
type Message = { kind: "live"; live: Live } | { kind: "join" };

/** Follows all pipelines until the returned function is called. */
export function followPipelines(onLive: (live: Live) => void): () => void {
  let live: Live = { pipelines: null, connected: false, heard: 0 };
  let leading = false;
  const channel = "BroadcastChannel" in window ? new BroadcastChannel(NAME) : null;
  const ended = new AbortController();

  function update(change: Partial<Live>): void {
    live = { ...live, ...change };
    onLive(live);
    if (leading) channel?.postMessage({ kind: "live", live } satisfies Message);
  }

  function lead(): () => void {
    leading = true;
    let first = true;
    return openStream<Summary>(PATH, {
      onChanges: ({ changed, gone }) => {
        const pipelines = new Map(first ? [] : live.pipelines);
        first = false;
        // Later messages have changed fields only.
        changed.forEach((each) => pipelines.set(each.id, { ...pipelines.get(each.id), ...each }));
        gone.forEach((id) => pipelines.delete(id));
        update({ pipelines });
      },
      onAlive: () => update({ connected: true, heard: Date.now() }),
      onLost: () => {
        first = true;
        update({ connected: false });
      },
    });
  }

  channel?.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    if (data.kind === "join" && leading) channel.postMessage({ kind: "live", live });
    if (data.kind === "live" && !leading) onLive((live = data.live));
  });

  let close = () => {};
  if (channel && navigator.locks) {
    channel.postMessage({ kind: "join" } satisfies Message);
    const hold = () =>
      new Promise<void>((release) => {
        const end = lead();
        close = () => {
          end();
          release();
        };
        if (ended.signal.aborted) close();
      });
    navigator.locks.request(NAME, { signal: ended.signal }, hold).catch(() => {});
  } else {
    close = lead();
  }
  return () => {
    ended.abort();
    close();
    channel?.close();
  };
}

/** Server-sent events of a request. Unlike EventSource, a request may have a body. */
import { ApiError, Disconnected, PREFIX } from "./client";
import type { Problem } from "./types";

export type OnEvent = (name: string, facts: never) => void;

/** Reads events until their end. The signal ends the request, and with it the work of the server. */
export async function readStream(path: string, body: unknown, onEvent: OnEvent, signal: AbortSignal): Promise<void> {
  const response = await open(path, body, signal);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (unread + value).split("\n\n");
    unread = parts.pop()!;
    for (const part of parts) {
      const found = /^event: (.*)\ndata: (.*)$/s.exec(part);
      if (found && found[1] !== "age") onEvent(found[1]!, JSON.parse(found[2]!) as never);
    }
  }
}

async function open(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
  const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  let response: Response;
  try {
    response = await fetch(PREFIX + path, { ...post, signal, credentials: "same-origin" });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Disconnected();
  }
  if (response.ok) return response;
  const content = (await response.json().catch(() => ({}))) as { errors?: Problem[] };
  throw new ApiError(response.status, content.errors ?? []);
}

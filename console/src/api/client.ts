/** Requests to the API. Errors have the problems of the answer. */
import type { Change, Problem } from "./types";

export const PREFIX = "/api/v1";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problems: Problem[],
    readonly changes: Change[] = [],
  ) {
    super(problems[0]?.message ?? `the server answered with the status ${status}`);
  }

  get code(): string {
    return this.problems[0]?.code ?? "http";
  }

  get hint(): string | null {
    return this.problems[0]?.hint ?? null;
  }
}

/** Returns the problems of a text that the server has rejected; undefined for another error. */
export function rejectedText(error: unknown): Problem[] | undefined {
  return error instanceof ApiError && error.status === 422 ? error.problems : undefined;
}

/** The server cannot be reached: no answer at all. */
export class Disconnected extends Error {
  constructor() {
    super("the server does not answer");
  }
}

const OUTDATED = new Set<() => void>();

/** Calls a function whenever a request has no valid session. Returns the end of the calls. */
export function onLoggedOut(call: () => void): () => void {
  OUTDATED.add(call);
  return () => OUTDATED.delete(call);
}

async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(PREFIX + path, {
      method,
      signal,
      credentials: "same-origin",
      headers: body === undefined ? undefined : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Disconnected();
  }
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  const content = await response.json().catch(() => ({ errors: [] }));
  if (response.status === 401 && !path.startsWith("/login")) OUTDATED.forEach((call) => call());
  throw new ApiError(response.status, content.errors ?? [], content.changes);
}

export const api = {
  get: <T>(path: string, signal?: AbortSignal) => send<T>("GET", path, undefined, signal),
  post: <T>(path: string, body: unknown = {}, signal?: AbortSignal) => send<T>("POST", path, body, signal),
  put: <T>(path: string, body: unknown) => send<T>("PUT", path, body),
  patch: <T>(path: string, body: unknown) => send<T>("PATCH", path, body),
  delete: <T>(path: string) => send<T>("DELETE", path),
};

/** Returns a query string of the values that are set, with its question mark. */
export function query(values: Record<string, string | number | null | undefined>): string {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

/** The answers of the API, as `/api/v1/openapi.json` and `docs/howto/server.md` describe them. */

export const STATES = [
  "crash-looping", "failed", "unknown", "retrying", "slow", "stopping", "starting", "running",
  "idle", "stopped", "complete",
] as const;
export type State = (typeof STATES)[number];

export interface Reason { code: string; message: string; hint: string | null; node: string | null }
export interface Health {
  state: State;
  since: string | null;
  reason: Reason | null;
  next_attempt: string | null;
}
export interface Summary {
  id: string;
  name: string;
  file: string;
  language: string;
  health: Health;
  wish: string;
  version: number | null;
  changed: boolean;
  rows_per_second: number;
  lag: number | null;
  dead_letters: number;
  share: string | null;
  ejected: string | null;
  deletable: boolean;
}
export interface Problem {
  code: string;
  message: string;
  hint?: string | null;
  detail?: string | null;
  file?: string | null;
  line?: number | null;
  column?: number | null;
  length?: number | null;
  fixes?: Fix[];
}
export interface Position { line: number; column: number }
export interface Range { start: Position; end: Position }
export interface Fix { title: string; edits: { range: Range; text: string }[] }
export interface Completions { range: Range; items: Completion[] }
export interface Completion {
  label: string;
  kind: "option" | "value" | "type" | "node" | "column" | "function" | "keyword" | "snippet";
  text: string;
  detail: string;
  documentation: string;
  snippet: boolean;
}
export interface Column { name: string; type: string }
export interface NodeFacts {
  name: string;
  kind: "source" | "transform" | "sink";
  type: string;
  inputs: string[];
  columns: Column[] | null;
  format: string | null;
  watermark: string | null;
  state: string | null;
  on_error: string;
  guarantee: string | null;
}
export interface NodeNumbers {
  kind: string;
  rows: number;
  bytes: number | null;
  rows_per_second: number;
  lag: number | null;
  lag_unit: string;
  dead_letters: number;
  last_batch: number | null;
}
export interface Execution {
  state: string;
  error: string | null;
  code: string | null;
  sink?: string | null;
  next_attempt: number | null;
}
export interface Numbers {
  batches: number;
  dead_letters: number;
  nodes: Record<string, NodeNumbers>;
  queries: Record<string, Execution>;
}
export interface Detail extends Summary {
  nodes: NodeFacts[];
  errors: Problem[];
  warnings: Problem[];
  bounded: boolean | null;
  text: string | null;
  numbers: Numbers | null;
  owner: { pid: number | null; host: string | null; since: string | null } | null;
}
export interface Change { subject: string; effect: string; reason: string }
export interface CheckResult {
  ok: boolean;
  level: string;
  errors: Problem[];
  warnings: Problem[];
  changes: Change[];
  nodes: Record<string, CheckedNode>;
}
export interface CheckedNode { kind: string; type: string; columns: Column[] | null }
export interface Version { number: number; text: string; author: string; note: string; time: string }
export interface Run {
  id: string;
  began: string;
  ended: string | null;
  ending: string | null;
  exit_code?: number | null;
  errors: Record<string, Problem[]>;
  pipeline_version: number | null;
  author: string | null;
}
export type LogLine = Record<string, unknown> & {
  event?: string;
  level?: string;
  timestamp?: string;
  run?: string;
};
export interface Letter {
  id: string;
  time: string;
  node: string;
  stage: string;
  code: string;
  message: string;
  payload: string | null;
  payload_hex: string | null;
  header: string | null;
  origin: string | null;
  position: number | null;
  attempt: number;
}
export interface Letters {
  total: number;
  places: Record<string, { file: string; line: number } | null>;
  counts: { node: string; code: string; count: number }[];
  letters: Letter[];
  /** The place of the next page; null at the end. */
  next: string | null;
}
export type Right = "view" | "data" | "operate" | "edit" | "admin";
export const RIGHTS: Right[] = ["view", "data", "operate", "edit", "admin"];
export interface Me { name: string; rights: Right[] }
export interface UserFacts { name: string; rights: Right[]; time: string; has_password: boolean }
export interface Token { id: string; name: string; rights: Right[]; time: string; expires: string | null }
export interface AuditEntry {
  number: number;
  time: string;
  user: string;
  action: string;
  subject: string;
  facts: Record<string, unknown>;
}

/** The appearance and meaning of the states of a pipeline. */
import { STATES, type State, type Summary } from "../api/types";

export type Tone = "bad" | "warn" | "good" | "calm" | "info";

const TONES: Record<State, Tone> = {
  "crash-looping": "bad", failed: "bad", unknown: "warn", retrying: "warn", slow: "warn",
  stopping: "info", starting: "info", running: "good", idle: "calm", stopped: "calm",
  complete: "calm",
};
const UNHEALTHY = new Set<State>(["crash-looping", "failed", "unknown", "retrying", "slow"]);
const RUNNING = new Set<State>(["running", "idle", "slow", "retrying", "starting", "stopping"]);

export const tone = (state: State): Tone => TONES[state] ?? "warn";
export const isUnhealthy = (state: State): boolean => UNHEALTHY.has(state);
export const isActive = (state: State): boolean => RUNNING.has(state);

/** Whether a stop is requested that the run has not completed yet. */
export function isStopping({ health }: Summary): boolean {
  return health.state === "stopping";
}

export function bySeverity(one: Summary, other: Summary): number {
  const difference = STATES.indexOf(one.health.state) - STATES.indexOf(other.health.state);
  return difference || one.name.localeCompare(other.name);
}

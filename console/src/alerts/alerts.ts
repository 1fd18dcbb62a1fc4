/** Alerts, rules and channels, as the API has them. */
export interface Alert {
  number: number;
  rule: string;
  pipeline: string;
  name: string;
  message: string;
  opened: string;
  resolved: string | null;
  messages: { number: number; channel: string; event: string; attempts: number; sent: string | null; due: string | null; error: string | null }[];
}
export type RuleKind = "failed" | "crash_looping" | "ended" | "disk" | "restarts" | "lag" | "dead_letters" | "no_rows" | "no_output" | "watermark_delay";
export interface Rule {
  name: string;
  kind: RuleKind;
  pipelines: string[] | null;
  threshold: number;
  minutes: number;
  channels: string[];
  enabled: boolean;
  silenced_until: string | null;
}
export interface Channel { name: string; kind: "webhook" | "email"; options: Record<string, unknown>; secret: { set: boolean } }

interface Kind { label: string; threshold?: string; minutes?: "for" | "within" }

/** The conditions of rules, with the unit of their threshold. */
export const KINDS: Record<RuleKind, Kind> = {
  failed: { label: "A pipeline fails" },
  crash_looping: { label: "A pipeline is crash-looping" },
  ended: { label: "A run ends by itself" },
  disk: { label: "The free disk of the state is below", threshold: "%" },
  restarts: { label: "A pipeline restarts more than", threshold: "times", minutes: "within" },
  lag: { label: "The lag is above", threshold: "records", minutes: "for" },
  dead_letters: { label: "Dead letters per minute are above", threshold: "per minute", minutes: "for" },
  no_rows: { label: "No rows are read", minutes: "for" },
  no_output: { label: "Rows are read and none is written", minutes: "for" },
  watermark_delay: { label: "The watermark delay is above", threshold: "seconds", minutes: "for" },
};

/** Returns the condition of a rule as text. */
export function conditionOf(rule: Rule): string {
  const { label, threshold, minutes } = KINDS[rule.kind];
  return [label, threshold && `${rule.threshold} ${threshold}`, minutes && `${minutes} ${rule.minutes} min`].filter(Boolean).join(" ");
}

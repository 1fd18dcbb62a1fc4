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
export type RuleKind = "failed" | "crash_looping" | "ended" | "disk" | "lag" | "dead_letters" | "no_rows" | "watermark_delay";
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

interface Kind { label: string; threshold?: string; minutes?: boolean }

/** The conditions of rules, with the unit of their threshold. */
export const KINDS: Record<RuleKind, Kind> = {
  failed: { label: "A pipeline fails" },
  crash_looping: { label: "A pipeline is crash-looping" },
  ended: { label: "A run ends by itself" },
  disk: { label: "The free disk of the state is below", threshold: "%" },
  lag: { label: "The lag is above", threshold: "records", minutes: true },
  dead_letters: { label: "Dead letters per minute are above", threshold: "per minute", minutes: true },
  no_rows: { label: "No rows are read", minutes: true },
  watermark_delay: { label: "The watermark delay is above", threshold: "seconds", minutes: true },
};

/** Returns the condition of a rule as text. */
export function conditionOf(rule: Rule): string {
  const { label, threshold, minutes } = KINDS[rule.kind];
  return [label, threshold && `${rule.threshold} ${threshold}`, minutes && `for ${rule.minutes} min`].filter(Boolean).join(" ");
}

/** The time ranges of the tab Metrics. */
export const RANGES = [
  ["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"], ["7d", "7 d"], ["30d", "30 d"],
] as const;
export const DEFAULT_RANGE = "1h";

/** Returns the range of an address; the default for an unknown one. */
export function rangeOf(text: string | null): string {
  return RANGES.some(([name]) => name === text) ? text! : DEFAULT_RANGE;
}

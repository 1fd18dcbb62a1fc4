/** Quantities of charts: their units, and their numbers on axes and by themselves. */
import { bytes, count, plural, rate } from "../format/numbers";

export interface Quantity {
  /** The unit, for the axis and for the table. */
  unit: string;
  /** A number on the axis, which has the unit unless the number has its own. */
  tick: (value: number) => string;
  /** A number with its unit. */
  text: (value: number) => string;
  /** Whether numbers on the axis have units of their own. */
  named?: boolean;
  /** The base of round numbers: 60 for durations. */
  base?: number;
}

export const ROWS_PER_SECOND: Quantity = { unit: "rows/s", tick: rate, text: (value) => `${rate(value)} rows/s` };
export const STATE_ROWS: Quantity = { unit: "rows", tick: count, text: (value) => plural(Math.round(value), "row") };
export const SIZE: Quantity = { unit: "bytes", tick: bytes, text: bytes, named: true };
export const DURATION: Quantity = { unit: "seconds", tick: seconds, text: seconds, named: true };
export const DELAY: Quantity = { ...DURATION, base: 60 };
export const LETTERS: Quantity = { unit: "dead letters", tick: shorten, text: (value) => plural(Number(shorten(value)), "dead letter") };

export function lagIn(unit: string): Quantity {
  return { unit, tick: count, text: (value) => `${count(value)} ${unit}` };
}

/** Returns a duration as people read it: `40 ms`, `1.2 s`, `2.5 min`, `3 h`. */
export function seconds(value: number): string {
  if (value === 0) return "0 s";
  if (value < 1) return `${shorten(value * 1000)} ms`;
  if (value < 60) return `${shorten(value)} s`;
  if (value < 3600) return `${shorten(value / 60)} min`;
  return value < 172_800 ? `${shorten(value / 3600)} h` : `${shorten(value / 86_400)} d`;
}

function shorten(value: number): string {
  return value < 10 ? String(Number(value.toFixed(1))) : count(value);
}

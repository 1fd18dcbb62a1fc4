/** The data of a chart, and the shapes of its lines and areas. */
import type { Values } from "../api/metrics";

export interface Line { name: string; values: Values; most?: Values }
export interface Mark { time: number; label: string; bad: boolean }
export type Shape = "lines" | "areas" | "bars";
export type Point = [number, number, number];

export const MAX_LINES = 7;

export const color = (index: number) => `var(--series-${(index % MAX_LINES) + 1})`;

/** Returns the lines with the greatest values, in their order. */
export function greatest(lines: Line[]): Line[] {
  if (lines.length <= MAX_LINES) return lines;
  const sums = new Map(lines.map((line) => [line, line.values.reduce<number>((sum, value) => sum + (value ?? 0), 0)]));
  const chosen = new Set([...lines].sort((one, other) => sums.get(other)! - sums.get(one)!).slice(0, MAX_LINES));
  return lines.filter((line) => chosen.has(line));
}

/** Returns the bottom and the top of each value, each line on top of the ones before. */
export function stack(lines: Line[]): ([number, number] | null)[][] {
  const heights: number[] = [];
  return lines.map((line) =>
    line.values.map((value, index) => {
      if (value === null) return null;
      const bottom = heights[index] ?? 0;
      heights[index] = bottom + value;
      return [bottom, bottom + value];
    }),
  );
}

/** Returns the greatest value of a chart. */
export function peak(lines: Line[], stacked: boolean): number {
  const tops = stacked ? stack(lines).flat().map((pair) => pair?.[1]) : lines.flatMap((line) => line.values);
  return tops.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

/** Returns runs of points without gaps. A point is [x, bottom, top]. */
export function runs(points: (Point | null)[]): Point[][] {
  const found: Point[][] = [];
  points.forEach((point, index) => {
    if (!point) return;
    if (index === 0 || !points[index - 1]) found.push([]);
    found[found.length - 1]!.push(point);
  });
  return found;
}

export function linePath(run: Point[]): string {
  return run.map(([x, , top], index) => `${index ? "L" : "M"}${x.toFixed(1)},${top.toFixed(1)}`).join("");
}

export function areaPath(run: Point[]): string {
  const back = [...run].reverse().map(([x, bottom]) => `L${x.toFixed(1)},${bottom.toFixed(1)}`);
  return `${linePath(run)}${back.join("")}Z`;
}

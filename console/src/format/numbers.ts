/** Numbers as people read them: `12,345`, `1.2 k/s`, `3.4 MB`. */

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

export function count(value: number): string {
  return value < 100_000 ? whole.format(value) : compact.format(value);
}

export function rate(rowsPerSecond: number): string {
  if (rowsPerSecond === 0) return "0";
  if (rowsPerSecond < 10) return rowsPerSecond.toFixed(1);
  return count(rowsPerSecond);
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [size, unit] = [value, 0];
  while (size >= 1000 && unit < units.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${size < 10 && unit ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

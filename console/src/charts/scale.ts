/** Scales and ticks of the axes of charts. */

/** Returns round numbers from 0 to at least `most`: the ticks of an axis. */
export function valueTicks(most: number, wanted = 4, base = 10): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const factors = base === 60 ? [1, 2, 5, 10, 15, 30, 60] : [1, 2, 5, 10];
  const step = (factors.find((each) => each * power >= rough) ?? base) * power;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => index * step);
}

const STEPS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 432_000];

/** Returns round local times within a range, at most `wanted`. All times are Unix times. */
export function timeTicks(start: number, end: number, wanted: number): number[] {
  const step = STEPS.find((each) => (end - start) / each <= wanted) ?? STEPS[STEPS.length - 1]!;
  const offset = -new Date(start * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((start + offset) / step) * step - offset;
  const ticks = [];
  for (let time = first; time <= end; time += step) ticks.push(time);
  return ticks;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const moment = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

export function tickText(time: number, window: number): string {
  return (window > 2 * 86_400 ? day : clock).format(new Date(time * 1000));
}

export function momentText(time: number): string {
  return moment.format(new Date(time * 1000));
}

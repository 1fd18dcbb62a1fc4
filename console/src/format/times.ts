/** Times as people read them: `3 min ago`, `in 8 s`, `2 h 5 min`. */

const absoluteFormat = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

export function absolute(time: string): string {
  return absoluteFormat.format(new Date(time));
}

/** Returns the largest one or two units of a duration. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes < 5 && seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return days < 7 && hours % 24 ? `${days} d ${hours % 24} h` : `${days} d`;
}

export function relative(time: string, now: number): string {
  const difference = new Date(time).getTime() - now;
  if (Math.abs(difference) < 1500) return "now";
  return difference > 0 ? `in ${duration(difference)}` : `${duration(-difference)} ago`;
}

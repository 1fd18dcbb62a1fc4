import { absolute, relative } from "../format/times";
import { useNow } from "../live/useNow";

interface Props { at: string | null | undefined; none?: string }

/** A time relative to now, with the absolute one as its title. */
export function Time({ at, none = "–" }: Props) {
  const now = useNow();
  if (!at) return <span className="quiet">{none}</span>;
  return (
    <time dateTime={at} title={absolute(at)} className="number">
      {relative(at, now)}
    </time>
  );
}

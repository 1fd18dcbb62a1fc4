import type { State } from "../api/types";
import { tone } from "../format/health";
import classes from "./StateBadge.module.css";

interface Props { state: State; label?: string; large?: boolean }

/** The state of a pipeline as a coloured mark with its name. Colour is never the only sign. */
export function StateBadge({ state, label, large }: Props) {
  return (
    <span className={classes.badge} data-tone={tone(state)} data-large={large || undefined} data-live>
      <Mark state={state} />
      {label ?? state}
    </span>
  );
}

function Mark({ state }: { state: State }) {
  const kind = tone(state);
  return (
    <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden className={classes.mark} data-state={state}>
      {kind === "bad" && <path d="M6 .8 11.600 11H.4Z" />}
      {kind === "warn" && <path d="M6 .5 11.500 6 6 11.500.5 6Z" />}
      {kind === "good" && <circle cx="6" cy="6" r="5" />}
      {kind === "info" && <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="2" strokeDasharray="14 6" />}
      {kind === "calm" && state === "complete" && <path d="M1.500 6.500 4.800 10 10.500 2.500" fill="none" stroke="currentColor" strokeWidth="2" />}
      {kind === "calm" && state === "stopped" && <rect x="2" y="2" width="8" height="8" rx="1" />}
      {kind === "calm" && state === "idle" && <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="2" />}
    </svg>
  );
}

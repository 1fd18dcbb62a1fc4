import type { Health } from "../api/types";
import { InlineCode } from "../parts/InlineCode";
import { Time } from "../parts/Time";
import classes from "./ReasonText.module.css";

/** The reason of a state: code, message, hint and the next attempt. */
export function ReasonText({ health }: { health: Health }) {
  const { reason, next_attempt } = health;
  if (!reason) return null;
  return (
    <div className={classes.reason}>
      <div className={classes.message} title={reason.message}>
        {reason.message}
      </div>
      <div className={classes.facts}>
        <code>{reason.code}</code>
        {reason.node && <span>in {reason.node}</span>}
        {next_attempt && (
          <span>
            next attempt <Time at={next_attempt} />
          </span>
        )}
        {reason.hint && <span title={reason.hint}><InlineCode text={reason.hint} /></span>}
      </div>
    </div>
  );
}

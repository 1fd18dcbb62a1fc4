import type { Change } from "../../api/types";
import classes from "./Editor.module.css";

/** The changes of a plan, and whether the state supports each of them. */
export function ChangeList({ changes }: { changes: Change[] }) {
  return (
    <ul className={classes.changes}>
      {changes.map((change, index) => (
        <li key={index} data-effect={change.effect}>
          <strong>{change.subject}</strong>: {change.reason}
          <span className="quiet"> ({change.effect === "compatible" ? "the state continues" : "the state does not support it"})</span>
        </li>
      ))}
    </ul>
  );
}

import type { ReactNode } from "react";
import type { Tone } from "../format/health";
import classes from "./Notice.module.css";

interface Props { tone: Tone; title: ReactNode; children?: ReactNode; actions?: ReactNode; role?: "alert" | "status" }

/** A message in the page: its title, its explanation and its actions. */
export function Notice({ tone, title, children, actions, role }: Props) {
  return (
    <div className={classes.notice} data-tone={tone} role={role}>
      <div className={classes.text}>
        <strong>{title}</strong>
        {children && <div className={classes.body}>{children}</div>}
      </div>
      {actions && <div className={classes.actions}>{actions}</div>}
    </div>
  );
}

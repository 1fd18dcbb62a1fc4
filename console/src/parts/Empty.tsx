import type { ReactNode } from "react";
import classes from "./Empty.module.css";

interface Props { title: string; children?: ReactNode; actions?: ReactNode }

/** The place of a list without entries: why it is empty, and the next step. */
export function Empty({ title, children, actions }: Props) {
  return (
    <div className={classes.empty}>
      <h2>{title}</h2>
      {children && <div className={classes.text}>{children}</div>}
      {actions}
    </div>
  );
}

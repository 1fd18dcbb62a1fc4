import type { ReactNode } from "react";
import { Logo } from "../shell/Logo";
import classes from "./Gate.module.css";

/** The frame of the pages before and beside the console: login and password. */
export function Gate({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className={classes.gate}>
      <div className={classes.brand}>
        <Logo size={36} />
        <span>Penstock</span>
      </div>
      <section className={classes.card}>
        <h1>{title}</h1>
        {children}
      </section>
    </main>
  );
}

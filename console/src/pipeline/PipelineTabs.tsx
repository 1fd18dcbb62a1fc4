import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { count } from "../format/numbers";
import classes from "./PipelineTabs.module.css";

interface Props { id: string; tab: string; letters: number; data: boolean }

const TABS = [
  ["graph", "Graph"], ["metrics", "Metrics"], ["editor", "Editor"], ["versions", "Versions"], ["runs", "Runs"],
  ["logs", "Logs"], ["dead-letters", "Dead letters"],
] as const;

/** The tabs of a pipeline, each with an address. */
export function PipelineTabs({ id, tab, letters, data }: Props) {
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => {
    void tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [tab]);
  return (
    <nav ref={tabs} className={classes.tabs} aria-label="Pipeline">
      {TABS.filter(([name]) => data || (name !== "logs" && name !== "dead-letters")).map(([name, label]) => (
        <Link key={name} href={`/pipelines/${id}/${name}`} className={classes.tab} aria-current={name === tab ? "page" : undefined}>
          {label}
          {name === "dead-letters" && letters > 0 && <span className={classes.count}>{count(letters)}</span>}
        </Link>
      ))}
    </nav>
  );
}

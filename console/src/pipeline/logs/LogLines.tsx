import { memo, useLayoutEffect, useRef } from "react";
import type { LogLine } from "../../api/types";
import { absolute } from "../../format/times";
import classes from "./Logs.module.css";

const OWN = new Set(["event", "level", "timestamp", "run", "pipeline", "detail"]);
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

/** Lines of a log, oldest first. The end stays in view while the reader is there. */
export function LogLines({ lines, follow }: { lines: LogLine[]; follow: boolean }) {
  const frame = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    if (follow && atEnd.current) frame.current!.scrollTop = frame.current!.scrollHeight;
  }, [lines, follow]);
  return (
    <div
      ref={frame} className={classes.lines} tabIndex={0} role="log" aria-label="Lines"
      onScroll={({ currentTarget: each }) => (atEnd.current = each.scrollHeight - each.scrollTop - each.clientHeight < 24)}
    >
      {lines.map((line, index) => <Line key={`${line.timestamp}-${index}`} line={line} />)}
    </div>
  );
}

const Line = memo(function Line({ line }: { line: LogLine }) {
  const facts = Object.entries(line).filter(([name]) => !OWN.has(name));
  return (
    <div className={classes.line} data-level={line.level}>
      <time title={line.timestamp && absolute(line.timestamp)}>{line.timestamp ? clock.format(new Date(line.timestamp)) : ""}</time>
      <span className={classes.level}>{line.level ?? "info"}</span>
      <span className={classes.event}>
        {line.event}
        {facts.map(([name, value]) => (
          <span key={name} className={classes.fact}>
            {name}=<b>{typeof value === "string" ? value : JSON.stringify(value)}</b>
          </span>
        ))}
        {typeof line.detail === "string" && <pre>{line.detail}</pre>}
      </span>
    </div>
  );
});

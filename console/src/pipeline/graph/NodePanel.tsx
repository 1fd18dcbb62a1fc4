import { Button, CloseButton } from "@mantine/core";
import { useEffect, useRef } from "react";
import type { NodeFacts, NodeNumbers } from "../../api/types";
import { bytes, count, plural, rate } from "../../format/numbers";
import { Time } from "../../parts/Time";
import classes from "./GraphTab.module.css";

interface Props { node: NodeFacts; numbers?: NodeNumbers; onTap?: () => void; onClose: () => void }

/** The facts, the numbers and the columns of a node. It is scrolled into view, below the graph on small screens. */
export function NodePanel({ node, numbers, onTap, onClose }: Props) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    void panel.current?.scrollIntoView({ block: "nearest" });
  }, [node.name]);
  const facts: [string, React.ReactNode][] = [
    ["Rows", numbers && numbers.kind !== "transform" ? `${count(numbers.rows)} · ${rate(numbers.rows_per_second)}/s` : null],
    ["Size", numbers?.bytes != null ? bytes(numbers.bytes) : null],
    ["Lag", numbers?.lag != null ? `${count(numbers.lag)} ${numbers.lag_unit}` : null],
    ["Dead letters", numbers ? count(numbers.dead_letters) : null],
    ["Last batch", numbers?.last_batch ? <Time at={new Date(numbers.last_batch * 1000).toISOString()} /> : null],
    ["Input", node.inputs.join(", ") || null],
    ["Format", node.format],
    ["Watermark", node.watermark],
    ["State", node.state],
    ["On error", node.on_error],
    ["Guarantee", node.guarantee],
  ];
  return (
    <aside ref={panel} className={`surface ${classes.panel}`} aria-label={`Node ${node.name}`}>
      <header>
        <div>
          <h2>{node.name}</h2>
          <span className="quiet">
            {node.kind} · {node.type}
          </span>
        </div>
        <CloseButton aria-label="Close" onClick={onClose} />
      </header>
      <dl>
        {facts.filter(([, value]) => value !== null && value !== undefined).map(([label, value]) => (
          <div key={label} style={{ display: "contents" }}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {onTap && <Button size="xs" variant="default" mb={12} onClick={onTap}>Show rows now</Button>}
      {node.columns && (
        <>
          <div className="quiet">{plural(node.columns.length, "column")}</div>
          <ul className={classes.columns} tabIndex={0} aria-label="Columns">
            {node.columns.map((column) => (
              <li key={column.name} className="mono">
                <span>{column.name}</span>
                <span className="quiet">{column.type}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </aside>
  );
}

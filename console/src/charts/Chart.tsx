import { useElementSize } from "@mantine/hooks";
import { type ReactNode, useId, useMemo, useState } from "react";
import classes from "./Chart.module.css";
import "./charts.css";
import { ChartTable } from "./ChartTable";
import { Legend } from "./Legend";
import { Plot } from "./Plot";
import type { Quantity } from "./quantities";
import { greatest, type Line, type Mark, type Shape } from "./series";

interface Props {
  /** The question that the chart answers. */
  title: string;
  quantity: Quantity;
  times: number[];
  lines: Line[];
  shape?: Shape;
  marks: Mark[];
  /** The text of a chart without lines. */
  empty: string;
  tools?: ReactNode;
}

/** A chart with its title, its legend, and a table with the same values. */
export function Chart({ title, quantity, times, lines, shape = "lines", marks, empty, tools }: Props) {
  const { ref, width } = useElementSize();
  const [table, setTable] = useState(false);
  const id = useId();
  const shown = useMemo(() => greatest(lines), [lines]);
  const hidden = lines.length - shown.length;
  return (
    <section className={`surface ${classes.card}`} aria-labelledby={id}>
      <header className={classes.head}>
        <h2 id={id}>{title}</h2>
        {lines.length > 0 && (
          <button type="button" className={classes.toggle} aria-label={`Table: ${title}`} aria-pressed={table} onClick={() => setTable(!table)}>
            Table
          </button>
        )}
      </header>
      {tools}
      <div ref={ref} className={classes.body}>
        {lines.length === 0 ? (
          <p className={classes.empty}>{empty}</p>
        ) : table ? (
          <ChartTable title={title} quantity={quantity} times={times} lines={lines} />
        ) : (
          <Plot label={`${title} In ${quantity.unit}.`} quantity={quantity} width={width} times={times} lines={shown} shape={shape} marks={marks} />
        )}
      </div>
      {lines.length > 0 && !table && <Legend lines={shown} hidden={hidden} shape={shape} />}
    </section>
  );
}

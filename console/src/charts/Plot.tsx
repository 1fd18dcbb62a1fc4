import { type KeyboardEvent, type PointerEvent, useMemo, useState } from "react";
import classes from "./Chart.module.css";
import type { Quantity } from "./quantities";
import { momentText, tickText, timeTicks, valueTicks } from "./scale";
import { areaPath, color, type Line, linePath, type Mark, peak, type Point, runs, type Shape, stack } from "./series";

interface Props {
  label: string;
  quantity: Quantity;
  width: number;
  times: number[];
  lines: Line[];
  shape: Shape;
  marks: Mark[];
}

const HEIGHT = 190;
const [TOP, RIGHT, BOTTOM, LEFT] = [18, 12, 22, 58];

/** The axes and lines of a chart. The pointer and the arrow keys show the values of a time. */
export function Plot({ label, quantity, width, times, lines, shape, marks }: Props) {
  const [selected, setSelected] = useState<number | null>(null);
  const stacked = shape !== "lines";
  const ticks = useMemo(() => valueTicks(peak(lines, stacked), 4, quantity.base), [lines, stacked, quantity]);
  const [start, step] = [times[0]!, (times[1] ?? times[0]! + 1) - times[0]!];
  const end = times[times.length - 1]! + step;
  const [inner, most] = [Math.max(width - LEFT - RIGHT, 1), ticks[ticks.length - 1]!];
  const x = (time: number) => LEFT + ((time - start) / (end - start)) * inner;
  const y = (value: number) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  const shapes = useMemo(() => points(lines, stacked, times, x, y), [lines, stacked, times, width, most]);
  if (!width) return <div style={{ height: HEIGHT }} />;

  function point(event: PointerEvent<SVGSVGElement>): void {
    const at = (event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT) / inner;
    const index = Math.floor(at * times.length);
    setSelected(index >= 0 && index < times.length ? index : null);
  }

  function press(event: KeyboardEvent): void {
    const last = times.length - 1;
    const next = { ArrowLeft: (selected ?? last + 1) - 1, ArrowRight: (selected ?? last) + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") setSelected(null);
    if (next === undefined) return;
    event.preventDefault();
    setSelected(Math.min(Math.max(next, 0), last));
  }

  const middle = selected === null ? 0 : x(times[selected]! + step / 2);
  return (
    <div className={classes.plot}>
      <svg
        width={width} height={HEIGHT} role="img" tabIndex={0} aria-label={`${label} Arrow keys show the values of a time.`} data-live
        onPointerMove={point} onPointerLeave={() => setSelected(null)} onKeyDown={press} onBlur={() => setSelected(null)}
      >
        {ticks.map((tick) => (
          <g key={tick} className={classes.tick}>
            <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 8} y={y(tick) + 4} textAnchor="end">{quantity.tick(tick)}</text>
          </g>
        ))}
        {!quantity.named && <text className={classes.unit} x={0} y={9}>{quantity.unit}</text>}
        {timeTicks(start, end - 0.04 * (end - start), inner / 90).map((time) => (
          <text key={time} className={classes.time} x={x(time)} y={HEIGHT - 5} textAnchor="middle">{tickText(time, end - start)}</text>
        ))}
        {marks.filter(({ time }) => time >= start && time < end).map((mark) => (
          <line key={`${mark.time} ${mark.label}`} className={classes.mark} data-bad={mark.bad || undefined} x1={x(mark.time)} x2={x(mark.time)} y1={TOP} y2={HEIGHT - BOTTOM} />
        ))}
        {shapes.map((line, index) => (
          <Drawn key={lines[index]!.name} line={line} shape={shape} color={color(index)} width={inner / times.length} />
        ))}
        {selected !== null && <line className={classes.cursor} x1={middle} x2={middle} y1={TOP} y2={HEIGHT - BOTTOM} />}
      </svg>
      {selected !== null && (
        <div className={classes.values} role="status" style={middle > width / 2 ? { right: width - middle + 12 } : { left: middle + 12 }}>
          <b>{momentText(times[selected]!)}</b>
          {marks.filter(({ time }) => time >= times[selected]! && time < times[selected]! + step).map((mark) => (
            <em key={mark.label} data-bad={mark.bad || undefined}>{mark.label}</em>
          ))}
          {lines.map((line, index) => (
            <span key={line.name}>
              <i style={{ background: color(index) }} />
              {line.name}
              <strong className="number">{valueText(line, selected, quantity)}</strong>
            </span>
          ))}
        </div>
      )}
    </div>
  );
}

function points(lines: Line[], stacked: boolean, times: number[], x: (time: number) => number, y: (value: number) => number): Point[][][] {
  const step = (times[1] ?? times[0]! + 1) - times[0]!;
  const pairs = stacked ? stack(lines) : lines.map((line) => line.values.map((value): [number, number] | null => (value === null ? null : [0, value])));
  return pairs.map((line) => runs(line.map((pair, index) => pair && [x(times[index]! + step / 2), y(pair[0]), y(pair[1])])));
}

interface DrawnProps { line: Point[][]; shape: Shape; color: string; width: number }

function Drawn({ line, shape, color, width }: DrawnProps) {
  if (shape === "bars") {
    const size = Math.max(width - 1, 1);
    return line.flat().filter(([, bottom, top]) => bottom > top).map(([x, bottom, top]) => (
      <rect key={x} x={x - size / 2} y={top} width={size} height={Math.max(bottom - top, 1.5)} fill={color} />
    ));
  }
  return line.map((run) =>
    run.length === 1 ? (
      <circle key={run[0]![0]} cx={run[0]![0]} cy={run[0]![2]} r={2} fill={color} />
    ) : (
      <g key={run[0]![0]}>
        {shape === "areas" && <path d={areaPath(run)} fill={color} fillOpacity={0.35} />}
        <path d={linePath(run)} fill="none" stroke={color} strokeWidth={shape === "areas" ? 1.2 : 1.7} strokeLinejoin="round" />
      </g>
    ),
  );
}

function valueText(line: Line, index: number, quantity: Quantity): string {
  const value = line.values[index];
  if (value == null) return "–";
  const most = line.most?.[index];
  const spike = most != null && most > value * 1.2 ? `, up to ${quantity.tick(most)}` : "";
  return quantity.text(value) + spike;
}

import { memo } from "react";
import type { Values } from "../api/metrics";
import "./charts.css";

interface Props { values: Values | undefined; width: number; height: number }

/** A line without axes beside a number. Readers of the screen get the number only. */
export const Sparkline = memo(function Sparkline({ values, width, height }: Props) {
  const known = values?.filter((each) => each !== null) ?? [];
  if (!values || known.length < 2) return null;
  const most = Math.max(...known) || 1;
  const step = width / (values.length - 1);
  let path = "";
  values.forEach((value, index) => {
    if (value === null) return;
    const y = height - 1 - (value / most) * (height - 2);
    path += `${index && values[index - 1] !== null ? "L" : "M"}${(index * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg className="sparkline" width={width} height={height} aria-hidden="true" data-live>
      <path d={path} />
    </svg>
  );
});

import classes from "./Chart.module.css";
import type { Quantity } from "./quantities";
import { momentText } from "./scale";
import type { Line } from "./series";

interface Props { title: string; quantity: Quantity; times: number[]; lines: Line[] }

/** The values of a chart as a table, the newest first. */
export function ChartTable({ title, quantity, times, lines }: Props) {
  const indexes = times.map((_, index) => index).filter((index) => lines.some((line) => line.values[index] != null)).reverse();
  return (
    <div className={classes.table} tabIndex={0} role="region" aria-label={`Table: ${title}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map((line) => (
              <th key={line.name} scope="col">{line.name} <span className="quiet">({quantity.unit})</span></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {indexes.map((index) => (
            <tr key={times[index]}>
              <th scope="row">{momentText(times[index]!)}</th>
              {lines.map((line) => (
                <td key={line.name} className="number">{line.values[index] == null ? "–" : quantity.tick(line.values[index])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

import classes from "./Chart.module.css";
import { color, type Line, type Shape } from "./series";

interface Props { lines: Line[]; hidden: number; shape: Shape }

/** The names of the lines, and the number of those that only the table has. */
export function Legend({ lines, hidden, shape }: Props) {
  return (
    <ul className={classes.legend} aria-label="Legend">
      {lines.map((line, index) => (
        <li key={line.name} title={line.name}>
          <i data-shape={shape} style={{ background: color(index) }} />
          <span>{line.name}</span>
        </li>
      ))}
      {hidden > 0 && <li className="quiet">and {hidden} more in the table</li>}
    </ul>
  );
}

import type { Problem } from "../../api/types";
import { InlineCode } from "../../parts/InlineCode";
import classes from "./Editor.module.css";

interface Props { errors: Problem[]; warnings: Problem[]; onShow: (problem: Problem) => void }

/** The problems of a text. Each is a button that shows its place. */
export function ProblemList({ errors, warnings, onShow }: Props) {
  const all = [...errors.map((each) => ["bad", each] as const), ...warnings.map((each) => ["warn", each] as const)];
  if (!all.length) return null;
  return (
    <ul className={classes.problems} aria-label="Problems">
      {all.map(([tone, problem], index) => (
        <li key={index}>
          <button type="button" data-tone={tone} onClick={() => onShow(problem)}>
            <span className={classes.place}>{problem.line ? `${problem.line}:${problem.column ?? 1}` : "–"}</span>
            <span>
              {problem.message} <code>{problem.code}</code>
              {problem.hint && <span className="quiet"> <InlineCode text={problem.hint} /></span>}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

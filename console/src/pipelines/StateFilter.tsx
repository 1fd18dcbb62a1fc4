import { STATES, type State, type Summary } from "../api/types";
import { tone } from "../format/health";
import classes from "./StateFilter.module.css";

interface Props { pipelines: Summary[]; state: State | null; onChange: (state: State | null) => void }

/** The number of pipelines of each state, as buttons that filter the list. */
export function StateFilter({ pipelines, state, onChange }: Props) {
  const counts = STATES.map((each) => [each, pipelines.filter((one) => one.health.state === each).length] as const);
  return (
    <div className={classes.filter} role="group" aria-label="Filter by state">
      <button type="button" aria-pressed={state === null} onClick={() => onChange(null)}>
        All <b className="number">{pipelines.length}</b>
      </button>
      {counts
        .filter(([each, count]) => count > 0 || each === state)
        .map(([each, count]) => (
          <button key={each} type="button" aria-pressed={each === state} data-tone={tone(each)} onClick={() => onChange(each === state ? null : each)}>
            {each} <b className="number">{count}</b>
          </button>
        ))}
    </div>
  );
}

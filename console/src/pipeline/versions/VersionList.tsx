import type { Version } from "../../api/types";
import { Time } from "../../parts/Time";
import classes from "./Versions.module.css";

interface Props { versions: Version[]; chosen: number; onChoose: (number: number) => void }

/** The versions with their authors and notes, last first. */
export function VersionList({ versions, chosen, onChoose }: Props) {
  return (
    <ol className={`surface ${classes.list}`} aria-label="Versions">
      {versions.map((version, index) => (
        <li key={version.number}>
          <button type="button" aria-pressed={version.number === chosen} onClick={() => onChoose(version.number)}>
            <span className={classes.number}>
              v{version.number}
              {index === 0 && <em>applied</em>}
            </span>
            <span className={classes.note}>{version.note || "no note"}</span>
            <span className="quiet">
              {version.author} · <Time at={version.time} />
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}

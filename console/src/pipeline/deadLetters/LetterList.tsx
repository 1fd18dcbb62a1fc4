import { Checkbox } from "@mantine/core";
import type { ReactNode } from "react";
import type { Letter } from "../../api/types";
import { count } from "../../format/numbers";
import { Time } from "../../parts/Time";
import { ShareButton } from "../../shared/ShareButton";
import classes from "./Letters.module.css";
import { Payload } from "./Payload";

interface Props {
  pipeline: string;
  letters: Letter[];
  total: number;
  chosen: ReadonlySet<string>;
  /** The letter of the address, which is open. */
  open: string | null;
  failing: (letter: Letter) => ReactNode;
  onChoose?: (chosen: ReadonlySet<string>) => void;
}

/** Dead letters, newest first. Each opens to show its payload. */
export function LetterList({ pipeline, letters, total, chosen, open, failing, onChoose }: Props) {
  const all = letters.every((each) => chosen.has(each.id));
  function toggle(id: string): void {
    const next = new Set(chosen);
    next.has(id) ? next.delete(id) : next.add(id);
    onChoose?.(next);
  }
  return (
    <>
      <div className={classes.head}>
        {onChoose && <Checkbox size="xs" label="Select these" checked={all} indeterminate={chosen.size > 0 && !all} onChange={() => onChoose(new Set(all ? [] : letters.map((each) => each.id)))} />}
        <span className="quiet">{total > letters.length ? `newest ${letters.length} of ${count(total)}` : `${count(total)}`}</span>
      </div>
      <ul className={classes.list}>
        {letters.map((letter) => (
          <li key={letter.id}>
            {onChoose && <Checkbox size="xs" aria-label={`Select ${letter.id}`} checked={chosen.has(letter.id)} onChange={() => toggle(letter.id)} />}
            <details open={letter.id === open || undefined}>
              <summary>
                <span className={classes.message}>{letter.message}</span>
                <span className={classes.facts}>
                  <code className="mono">{letter.code}</code> <span>in {letter.node}</span>
                  <Time at={letter.time} />
                  {letter.origin && <span className="mono">{letter.origin}{letter.position !== null && `:${letter.position}`}</span>}
                  {letter.attempt > 1 && <span>attempt {letter.attempt}</span>}
                </span>
              </summary>
              {failing(letter)}
              <Payload letter={letter} />
              <ShareButton id={pipeline} letter={letter.id} />
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}

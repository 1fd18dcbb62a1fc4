import type { Letters } from "../../api/types";
import { count } from "../../format/numbers";
import classes from "../../pipelines/StateFilter.module.css";

interface Props {
  counts: Letters["counts"];
  node: string | null;
  code: string | null;
  onChoose: (filter: Record<string, string>) => void;
}

/** The numbers of dead letters by node and code, as buttons that filter. */
export function LetterCounts({ counts, node, code, onChoose }: Props) {
  if (!counts.length) return <span />;
  return (
    <div className={classes.filter} role="group" aria-label="Filter by node and code">
      <button type="button" aria-pressed={!node && !code} onClick={() => onChoose({})}>
        All
      </button>
      {counts.map((each) => (
        <button key={`${each.node} ${each.code}`} type="button" data-tone="warn" aria-pressed={each.node === node && each.code === code} onClick={() => onChoose({ node: each.node, code: each.code })}>
          {each.node} · {each.code} <b className="number">{count(each.count)}</b>
        </button>
      ))}
    </div>
  );
}

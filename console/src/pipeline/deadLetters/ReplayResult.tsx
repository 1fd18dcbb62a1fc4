import { plural } from "../../format/numbers";
import { Notice } from "../../parts/Notice";
import type { Replayed } from "./useLetters";

/** The numbers of a replay by outcome. */
export function ReplayResult({ result }: { result: Replayed }) {
  const done = result.replayed + result.finished;
  return (
    <Notice tone={result.failed || result.skipped.length ? "warn" : "good"} title={`${plural(done, "dead letter")} replayed`} role="status">
      {result.failed > 0 && <div>{plural(result.failed, "dead letter")} failed again and remain.</div>}
      {result.skipped.map((each) => (
        <div key={each.node}>
          {each.node}: {each.reason}
        </div>
      ))}
    </Notice>
  );
}

import type { CheckResult } from "../../api/types";
import { plural } from "../../format/numbers";
import { InlineCode } from "../../parts/InlineCode";
import { Notice } from "../../parts/Notice";
import { ChangeList } from "./ChangeList";

/** The result of a check against the state: errors of the plan and changes. */
export function PlanResult({ result }: { result: CheckResult }) {
  const title = result.ok
    ? result.changes.length
      ? `${plural(result.changes.length, "change")} of the plan: the state continues`
      : "The plan is valid, and nothing changes for the state"
    : `The text cannot be applied: ${plural(result.errors.length, "error")}`;
  return (
    <Notice tone={result.ok ? "good" : "bad"} title={title} role="status">
      {!result.ok && result.errors.map((each, index) => <div key={index}>{each.message}{each.hint && <span className="quiet"> <InlineCode text={each.hint} /></span>}</div>)}
      {result.changes.length > 0 && <ChangeList changes={result.changes} />}
    </Notice>
  );
}

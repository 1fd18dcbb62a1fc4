import { ApiError } from "../../api/client";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { InlineCode } from "../../parts/InlineCode";
import { Notice } from "../../parts/Notice";
import { ChangeList } from "./ChangeList";
import { ResetState } from "./ResetState";
import { CHANGED_PLAN } from "./useCheck";

interface Props { error: unknown; name: string; busy: boolean; onFresh: () => void }

/** The reasons for which a text was not applied. Nothing has stopped. */
export function ApplyError({ error, name, busy, onFresh }: Props) {
  if (!(error instanceof ApiError) || error.status !== 422) return <ErrorNotice error={error} />;
  const stateOnly = error.problems.every((each) => each.code === CHANGED_PLAN);
  return (
    <Notice tone="bad" title="Not applied; the pipeline is unchanged" role="alert">
      {error.problems.map((each, index) => (
        <div key={index}>
          {each.message}
          {each.hint && <span className="quiet"> <InlineCode text={each.hint} /></span>}
        </div>
      ))}
      {error.changes.length > 0 && <ChangeList changes={error.changes} />}
      {stateOnly && <ResetState name={name} busy={busy} onReset={onFresh} />}
    </Notice>
  );
}

import { useEffect, useState } from "react";
import { useRollBack, useVersions } from "../../api/queries";
import type { Detail } from "../../api/types";
import { AskButton } from "../../parts/AskButton";
import { Empty } from "../../parts/Empty";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { Loading } from "../../parts/Loading";
import { Notice } from "../../parts/Notice";
import { useMay } from "../../session/SessionProvider";
import { ApplyError } from "../editor/ApplyError";
import DifferenceView from "../editor/DifferenceView";
import { VersionList } from "./VersionList";
import classes from "./Versions.module.css";

/** The versions of a pipeline, the difference of one to the version before, and the roll back. */
export default function VersionsTab({ detail }: { detail: Detail }) {
  const versions = useVersions(detail.id);
  const mayEdit = useMay("edit");
  const back = useRollBack(detail.id);
  const [chosen, setChosen] = useState<number | null>(null);
  useEffect(() => setChosen(null), [versions.data?.length]);
  if (versions.isError && !versions.data) return <ErrorNotice error={versions.error} onRetry={() => versions.refetch()} />;
  if (!versions.data) return <Loading />;
  const [latest] = versions.data;
  if (!latest) {
    return (
      <div className="surface">
        <Empty title="No version yet">The text becomes version 1 when it is applied or the pipeline starts.</Empty>
      </div>
    );
  }
  const version = versions.data.find((each) => each.number === chosen) ?? latest;
  const before = versions.data.find((each) => each.number < version.number);
  const target = version === latest ? before : version;
  return (
    <div className={classes.split}>
      <VersionList versions={versions.data} chosen={version.number} onChoose={setChosen} />
      <section className={`surface ${classes.detail}`} aria-label={`Version ${version.number}`}>
        <header className={classes.head}>
          <div>
            <h2>{before ? `Version ${before.number} → ${version.number}` : `Version ${version.number}`}</h2>
            {version.note && <span className="quiet">{version.note}</span>}
          </div>
          {mayEdit && target && (
            <AskButton key={target.number} size="xs" loading={back.isPending} question={`Apply the text of version ${target.number}?`} answer="Roll back" onConfirm={() => back.mutate({ number: target.number, fresh: false, base: latest.number })}>
              Roll back to version {target.number}
            </AskButton>
          )}
        </header>
        {back.isError && <ApplyError error={back.error} name={detail.name} busy={back.isPending} onFresh={() => back.mutate({ number: back.variables?.number ?? version.number, fresh: true, base: latest.number })} />}
        {back.data && version === latest && <Notice tone="good" title={`Rolled back: version ${back.data.number}`} role="status" />}
        <DifferenceView label={`Difference of version ${version.number}`} language={detail.language} before={before?.text ?? version.text} after={version.text} />
      </section>
    </div>
  );
}

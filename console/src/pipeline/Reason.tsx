import { Link } from "wouter";
import type { Health } from "../api/types";
import { tone } from "../format/health";
import { InlineCode } from "../parts/InlineCode";
import { Notice } from "../parts/Notice";
import { Time } from "../parts/Time";

/** The reason of the state of a pipeline, with the next steps. */
export function Reason({ health, id }: { health: Health; id: string }) {
  const reason = health.reason!;
  const bad = tone(health.state) === "bad";
  return (
    <Notice
      tone={tone(health.state)}
      title={reason.message}
      actions={
        bad && (
          <>
            <Link href={`/pipelines/${id}/logs?level=warning`}>Logs</Link>
            <Link href={`/pipelines/${id}/runs`}>Runs</Link>
          </>
        )
      }
    >
      <a href={`/docs/reference/errors/#${reason.code}`} target="_blank" rel="noreferrer">
        <code className="mono">{reason.code}</code>
      </a>
      {reason.node && <> in {reason.node}</>}
      {reason.hint && <> · <InlineCode text={reason.hint} /></>}
      {health.next_attempt && (
        <>
          {" "}
          · next attempt <Time at={health.next_attempt} />
        </>
      )}
    </Notice>
  );
}

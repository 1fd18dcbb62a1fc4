import { Button } from "@mantine/core";
import { plural } from "../../format/numbers";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { CaseDifference } from "./CaseDifference";
import classes from "./Panels.module.css";
import { Progress } from "./Progress";
import type { DraftAddress } from "./usePreview";
import { useTests } from "./useTests";

/** The test cases of the text in the editor. */
export function TestPanel({ draft, valid }: { draft: DraftAddress; valid: boolean }) {
  const { tested, ...tests } = useTests();
  const numbers = tested?.numbers;
  return (
    <>
      <div className={classes.tools}>
        {tests.open ? (
          <Button size="xs" variant="default" onClick={tests.stop}>Stop</Button>
        ) : (
          <Button size="xs" disabled={!valid} onClick={() => tests.test(draft)}>Run the tests</Button>
        )}
        <Progress stream={tests} waiting={tested ? `${plural(tested.pending.length, "case")} to go…` : "Starts a Spark session…"} />
        {numbers && (
          <span role="status" style={{ fontSize: 13 }}>
            <strong>{numbers.failed ? `${numbers.failed} failed, ${numbers.passed} passed` : `${numbers.passed} passed`}</strong> in {numbers.seconds} s
          </span>
        )}
      </div>
      {tests.error != null && <div className={classes.body}><ErrorNotice error={tests.error} /></div>}
      {!tested && !tests.open && tests.error == null && <p className={classes.hint}>Cases below tests: have rows of sources and the rows that nodes must then have. No external system is used.</p>}
      {tested && (
        <ul className={classes.cases} aria-label="Test cases">
          {tested.cases.map((each) => (
            <li key={each.name}>
              <div className={classes.case}>
                <span className={classes.mark} data-failed={!each.passed || undefined}>{each.passed ? "passed" : "failed"}</span>
                <span>{each.name}</span>
                <span className="quiet number">line {each.line} · {each.seconds.toFixed(2)} s</span>
              </div>
              {!each.passed && <CaseDifference result={each} />}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

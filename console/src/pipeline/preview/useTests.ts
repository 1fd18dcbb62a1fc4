import { useState } from "react";
import { useStream } from "../../api/useStream";
import type { DraftAddress } from "./usePreview";

export type Fields = Record<string, unknown>;
export interface CaseResult {
  name: string;
  line: number;
  passed: boolean;
  seconds: number;
  error: { code: string; message: string } | null;
  no_error: boolean;
  nodes: Record<string, { missing: Fields[]; unexpected: Fields[]; different: { expected: Fields; got: Fields; columns: string[] }[] }>;
  dead_letters: { missing: Fields[]; unexpected: Fields[] };
}
export interface Tested { cases: CaseResult[]; pending: string[]; numbers: { passed: number; failed: number; seconds: number } | null }

/** The test cases of a draft, with the results so far. */
export function useTests() {
  const stream = useStream();
  const [tested, setTested] = useState<Tested | null>(null);
  function start(draft: DraftAddress): void {
    setTested(null);
    stream.start(`${draft.path}/test`, draft.body, (name, facts) => {
      if (name === "started") setTested({ cases: [], pending: (facts as { cases: string[] }).cases, numbers: null });
      if (name === "case") setTested((last) => last && { ...last, cases: [...last.cases, facts], pending: last.pending.slice(1) });
      if (name === "done") setTested((last) => last && { ...last, numbers: facts });
    });
  }
  return { ...stream, tested, test: start };
}

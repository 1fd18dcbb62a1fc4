import { useState } from "react";
import type { Column, Letter, Problem } from "../../api/types";
import { useStream } from "../../api/useStream";
import type { Row } from "../../parts/RowTable";

/** The draft at work: the address of its routes, and the body of their requests. */
export interface DraftAddress { path: string; body: { text: string; name?: string } }
export interface Ending {
  reason: "rows" | "end" | "time" | "size" | "cancelled" | "error";
  seconds: number;
  errors: Problem[];
  dead_letters: number;
  letters: Letter[];
}
interface Rows { node: string; columns: Column[]; rows: Row[] }
export interface Shown extends Rows { text: string; ending: Ending | null }

/** The preview of one node of a draft. The last rows remain until the next preview has some. */
export function usePreview() {
  const stream = useStream();
  const [shown, setShown] = useState<Shown | null>(null);
  function start(draft: DraftAddress, node: string, rows: number): void {
    let columns: Column[] = [];
    let found: Row[] = [];
    const { text } = draft.body;
    stream.start(`${draft.path}/preview`, { ...draft.body, nodes: [node], rows }, (name, facts) => {
      if (name === "rows") {
        const part = facts as Rows;
        columns = part.columns ?? columns;
        found = [...found, ...part.rows];
        setShown({ node, columns, rows: found, text, ending: null });
      }
      if (name === "done") setShown({ node, columns, rows: found, text, ending: facts });
    });
  }
  return { ...stream, shown, preview: start };
}

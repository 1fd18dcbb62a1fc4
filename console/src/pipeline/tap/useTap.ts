import { useRef, useState } from "react";
import { query } from "../../api/client";
import { pipelinePath } from "../../api/queries";
import type { Column } from "../../api/types";
import { useStream } from "../../api/useStream";
import type { Row } from "../../parts/RowTable";

const ROWS = 20;

interface Batch { batch: number; time: string; columns: Column[]; rows: Row[] }

/** A tap on a node of a run. The last rows remain when the tap ends. */
export function useTap(id: string, node: string) {
  const stream = useStream();
  const [last, setLast] = useState<Batch | null>(null);
  const [missed, setMissed] = useState<string | null>(null);
  const [passed, setPassed] = useState(0);
  const [frozen, setFrozen] = useState(false);
  const held = useRef(false);

  function hold(value: boolean): void {
    held.current = value;
    setFrozen(value);
    setPassed(0);
  }
  function listen(): void {
    hold(false);
    stream.start(`${pipelinePath(id)}/tap${query({ node, rows: ROWS })}`, undefined, (name, facts) => {
      if (name === "missed") setMissed((facts as { missed: string }).missed);
      if (name !== "rows") return;
      setMissed(null);
      if (held.current) setPassed((before) => before + 1);
      else setLast(facts);
    });
  }
  return { ...stream, last, missed, passed, frozen, listen, freeze: () => hold(true), thaw: () => hold(false) };
}

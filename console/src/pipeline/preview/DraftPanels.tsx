import { useId, useState } from "react";
import type { CheckedNode } from "../../api/types";
import { LetterPanel } from "./LetterPanel";
import classes from "./Panels.module.css";
import { PreviewPanel } from "./PreviewPanel";
import { TestPanel } from "./TestPanel";
import type { DraftAddress } from "./usePreview";

interface Props {
  draft: DraftAddress;
  nodes: Record<string, CheckedNode>;
  valid: boolean;
  /** The pipeline and a dead letter, to test the text on its record. */
  letter?: { id: string; letter: string };
}

/** The text in the editor at work: preview, tests, and one dead letter. */
export default function DraftPanels({ draft, nodes, valid, letter }: Props) {
  const label = useId();
  const names = ["Preview", "Tests", ...(letter ? ["Dead letter"] : [])];
  const idOf = (name: string) => label + names.indexOf(name);
  const [chosen, setChosen] = useState(letter ? "Dead letter" : "Preview");
  function move(event: React.KeyboardEvent<HTMLElement>): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = names[(names.indexOf(chosen) + step + names.length) % names.length]!;
    setChosen(next);
    document.getElementById(idOf(next))?.focus();
  }
  return (
    <section className={`surface ${classes.panels}`} aria-label="The text at work">
      <div className={classes.tabs} role="tablist" aria-label="The text at work" onKeyDown={move}>
        {names.map((each) => (
          <button key={each} id={idOf(each)} type="button" role="tab" aria-selected={each === chosen} aria-controls={`${idOf(each)}-panel`} tabIndex={each === chosen ? 0 : -1} onClick={() => setChosen(each)}>
            {each}
          </button>
        ))}
      </div>
      {names.map((each) => (
        <div key={each} id={`${idOf(each)}-panel`} role="tabpanel" aria-labelledby={idOf(each)} hidden={each !== chosen} style={{ paddingTop: 4 }}>
          {each === "Preview" && <PreviewPanel draft={draft} nodes={nodes} valid={valid} />}
          {each === "Tests" && <TestPanel draft={draft} valid={valid} />}
          {each === "Dead letter" && letter && <LetterPanel {...letter} draft={draft} valid={valid} />}
        </div>
      ))}
    </section>
  );
}

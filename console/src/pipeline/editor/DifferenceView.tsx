import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { appearance } from "./appearance";
import { loadSyntax, syntax } from "./languages";

interface Props { label: string; language: string; before: string; after: string }

/** The difference of two texts, line by line, with equal parts collapsed. */
export default function DifferenceView({ label, language, before, after }: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new EditorView({
      parent: place.current!,
      doc: after,
      extensions: [
        lineNumbers(), syntax, appearance, EditorView.lineWrapping,
        EditorState.readOnly.of(true), EditorView.editable.of(false),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", role: "textbox", "aria-readonly": "true" }),
        before === after ? [] : unifiedMergeView({ original: before, mergeControls: false, gutter: true, collapseUnchanged: { margin: 3, minSize: 6 } }),
      ],
    });
    void loadSyntax(view, language);
    return () => view.destroy();
  }, [label, language, before, after]);
  return <div ref={place} />;
}

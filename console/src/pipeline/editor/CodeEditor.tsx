import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Annotation, EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import type { Problem } from "../../api/types";
import { appearance } from "./appearance";
import { diagnosticsOf, fixKeys } from "./diagnostics";
import { languageService, type Subject } from "./language";
import { loadSyntax, syntax } from "./languages";
import { spanOf } from "./positions";
import { setup } from "./setup";

/** Marks a text that the page has set, which is no edit of the user. */
const fromPage = Annotation.define<boolean>();

export interface EditorHandle { show: (problem: Problem) => void }
interface Props {
  ref?: Ref<EditorHandle>;
  label: string;
  language: string;
  text: string;
  readOnly?: boolean;
  subject?: Subject;
  errors: Problem[];
  warnings: Problem[];
  onChange: (text: string) => void;
}

/** A text editor with marks at problems. Tab leaves the editor; Ctrl-. applies the next fix.
 *
 * With a `subject` it has completion and documentation. */
export function CodeEditor({ ref, label, language, text, readOnly, subject, errors, warnings, onChange }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useRef(onChange);
  changed.current = onChange;

  useEffect(() => {
    const created = new EditorView({
      parent: place.current!,
      doc: text,
      extensions: [
        keymap.of(fixKeys), subject && !readOnly ? languageService(subject) : [], setup, syntax, lintGutter(), appearance,
        EditorState.readOnly.of(Boolean(readOnly)),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": "editor-keys", tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          const byUser = update.transactions.some((each) => each.docChanged && !each.annotation(fromPage));
          if (byUser) changed.current(update.state.doc.toString());
        }),
      ],
    });
    view.current = created;
    void loadSyntax(created, language);
    return () => created.destroy();
  }, [language, readOnly, label, subject?.path, subject?.name]);

  useEffect(() => {
    const current = view.current!;
    if (current.state.doc.toString() === text) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text }, annotations: fromPage.of(true) });
  }, [text]);

  useEffect(() => {
    const { state } = view.current!;
    const marks = [...diagnosticsOf(errors, "error", state.doc), ...diagnosticsOf(warnings, "warning", state.doc)];
    view.current!.dispatch(setDiagnostics(state, marks));
  }, [errors, warnings]);

  useImperativeHandle(ref, () => ({
    show(problem) {
      const span = spanOf(problem, view.current!.state.doc);
      if (span) view.current!.dispatch({ selection: { anchor: span.from, head: span.to }, scrollIntoView: true });
      view.current!.focus();
    },
  }));

  return <div ref={place} />;
}

/** Problems of a check as marks in the editor, with a fix for "did you mean". */
import { type Diagnostic, forEachDiagnostic } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { EditorView, KeyBinding } from "@codemirror/view";
import type { Problem } from "../../api/types";
import { spanOf } from "./positions";

const SUGGESTION = /did you mean "([^"]+)"/i;

export const suggestionOf = (problem: Problem): string | null => SUGGESTION.exec(problem.hint ?? "")?.[1] ?? null;

export function diagnosticsOf(problems: Problem[], severity: "error" | "warning", document: Text): Diagnostic[] {
  return problems.flatMap((problem) => {
    const span = spanOf(problem, document);
    return span ? [{ ...span, severity, source: problem.code, message: messageOf(problem), actions: actionsOf(problem) }] : [];
  });
}

function messageOf({ message, hint }: Problem): string {
  return hint ? `${message}\n${hint}` : message;
}

function actionsOf(problem: Problem): Diagnostic["actions"] {
  const suggestion = suggestionOf(problem);
  if (suggestion === null) return [];
  return [{ name: `Change to ${suggestion}`, apply: (view, from, to) => replace(view, from, to, suggestion) }];
}

/** Replaces a span, and keeps its quotation marks. */
export function replace(view: EditorView, from: number, to: number, text: string): void {
  const quote = /^["'`]/.exec(view.state.sliceDoc(from, to))?.[0];
  const quoted = quote && view.state.sliceDoc(to - 1, to) === quote ? quote + text + quote : text;
  view.dispatch({ changes: { from, to, insert: quoted }, selection: { anchor: from + quoted.length }, scrollIntoView: true });
  view.focus();
}

/** Applies the fix at the cursor, or the next one below it. */
function applyFix(view: EditorView): boolean {
  const cursor = view.state.selection.main.head;
  const fixes: { from: number; to: number; diagnostic: Diagnostic }[] = [];
  forEachDiagnostic(view.state, (diagnostic, from, to) => {
    if (diagnostic.actions?.length) fixes.push({ from, to, diagnostic });
  });
  const fix = fixes.find((each) => each.to >= cursor) ?? fixes[0];
  fix?.diagnostic.actions?.[0]?.apply(view, fix.from, fix.to);
  return fix !== undefined;
}

export const fixKeys: KeyBinding[] = [{ key: "Mod-.", run: applyFix }];

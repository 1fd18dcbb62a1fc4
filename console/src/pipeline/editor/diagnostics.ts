/** Problems of a check as marks in the editor, with their fixes. */
import { type Diagnostic, forEachDiagnostic } from "@codemirror/lint";
import type { Text } from "@codemirror/state";
import type { EditorView, KeyBinding } from "@codemirror/view";
import type { Fix, Problem } from "../../api/types";
import { indexOf, spanOf } from "./positions";

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
  return problem.fixes?.map((fix) => ({ name: fix.title, apply: (view) => apply(view, fix) }));
}

function apply(view: EditorView, fix: Fix): void {
  const { doc } = view.state;
  const changes = view.state.changes(fix.edits.map(({ range, text }) => ({ from: indexOf(range.start, doc), to: indexOf(range.end, doc), insert: text })));
  const [first] = fix.edits;
  const anchor = first ? changes.mapPos(indexOf(first.range.end, doc), 1) : undefined;
  view.dispatch({ changes, selection: anchor === undefined ? undefined : { anchor }, scrollIntoView: true });
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

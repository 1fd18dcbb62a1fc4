/** The behaviour of the editor: history, brackets, folding, search. */
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { type Extension, StateEffect } from "@codemirror/state";
import { drawSelection, type EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";

/** Loads the search at its first use. */
function search(view: EditorView): boolean {
  void import("@codemirror/search").then(({ openSearchPanel, search, searchKeymap }) => {
    view.dispatch({ effects: StateEffect.appendConfig.of([search({ top: true }), keymap.of(searchKeymap)]) });
    openSearchPanel(view);
  });
  return true;
}

export const setup: Extension = [
  lineNumbers(), highlightActiveLineGutter(), highlightSpecialChars(), history(), foldGutter(), drawSelection(),
  indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(),
  keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap, { key: "Mod-f", run: search }]),
];

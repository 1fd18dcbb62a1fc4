/** Completion and documentation of the language service in the editor. */
import { autocompletion, type Completion as Option, type CompletionContext, type CompletionResult, completionKeymap, snippet } from "@codemirror/autocomplete";
import { Prec, type Extension } from "@codemirror/state";
import { type EditorView, hoverTooltip, keymap, type Tooltip } from "@codemirror/view";
import { api } from "../../api/client";
import type { Completion, Completions, Range } from "../../api/types";
import { documentation } from "./documentation";
import { completeNames } from "./names";
import { indexOf, positionOf } from "./positions";

/** The pipeline that questions are about: its address, or the name of a new one. */
export interface Subject { path: string; name?: string }

const TYPES: Record<Completion["kind"], string> = {
  option: "property", value: "enum", type: "class", node: "namespace", column: "variable",
  function: "function", keyword: "keyword", snippet: "text",
};
/** The text before the cursor where completion opens by itself: a word, or a sign that begins a value. */
const AFTER = /[\w.'"$@{[(]$|[:{[(,-] $/;

/** Completion while typing and by Ctrl-Space, and documentation under the pointer. */
export function languageService({ path, name }: Subject): Extension {
  const ask = <T>(question: string, view: EditorView["state"], index: number, signal?: AbortSignal): Promise<T> =>
    api.post<T>(`${path}/${question}`, { text: view.doc.toString(), ...positionOf(index, view.doc), ...(name === undefined ? {} : { name }) }, signal);

  async function complete(context: CompletionContext): Promise<CompletionResult | null> {
    const line = context.state.doc.lineAt(context.pos);
    if (!context.explicit && !AFTER.test(context.state.sliceDoc(line.from, context.pos))) return null;
    const abort = new AbortController();
    context.addEventListener("abort", () => abort.abort());
    const found = await ask<Completions>("complete", context.state, context.pos, abort.signal).catch(() => null);
    if (!found?.items.length) return null;
    const { doc } = context.state;
    return { from: indexOf(found.range.start, doc), to: indexOf(found.range.end, doc), filter: false, options: found.items.map(optionOf) };
  }

  async function hover(view: EditorView, index: number): Promise<Tooltip | null> {
    const { hover } = await ask<{ hover: { text: string; range: Range } | null }>("hover", view.state, index).catch(() => ({ hover: null }));
    if (!hover) return null;
    const { doc } = view.state;
    return { pos: indexOf(hover.range.start, doc), end: indexOf(hover.range.end, doc), above: true, create: () => ({ dom: documentation(hover.text) }) };
  }

  return [
    autocompletion({ override: [complete, completeNames], activateOnCompletion: ({ type }) => type === "property", maxRenderedOptions: 60 }),
    hoverTooltip(hover, { hoverTime: 400 }),
    Prec.high(keymap.of([...completionKeymap])),
  ];
}

function optionOf(item: Completion): Option {
  return {
    label: item.label,
    detail: item.detail,
    type: TYPES[item.kind],
    info: item.documentation ? () => documentation(item.documentation) : undefined,
    apply: item.snippet ? snippet(fieldsOf(item.text)) : item.text,
  };
}

/** Returns the fields of a snippet as CodeMirror writes them; the last one is `$0`. */
const fieldsOf = (text: string): string => text.replace(/\$(\d)/g, (_, number: string) => `\${${number === "0" ? "9" : number}}`).replace(/\$\{0:/g, "${9:");

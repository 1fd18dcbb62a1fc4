/** The colours of the editor, which follow those of the page. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const frame = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--accent)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--quiet)", border: "0", paddingLeft: "4px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent) !important",
  },
  ".cm-panels, .cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line-strong)" },
  ".cm-tooltip": { borderRadius: "6px", boxShadow: "0 6px 20px rgb(0 20 30 / 16%)", maxWidth: "min(560px, 90vw)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--surface)" },
  ".cm-documentation, .cm-completionInfo": { padding: "8px 12px", fontFamily: "var(--mantine-font-family)", maxHeight: "min(320px, 50vh)", overflow: "auto", lineHeight: "1.45" },
  ".cm-completionInfo .cm-documentation": { padding: "0" },
  ".cm-documentation > * + *": { marginTop: "6px" },
  ".cm-documentation code, .cm-documentation pre": { fontFamily: "var(--mono)", fontSize: "12px", backgroundColor: "var(--hover)", borderRadius: "3px", padding: "0 3px" },
  ".cm-documentation pre": { padding: "6px 8px", overflow: "auto" },
  ".cm-documentation-item": { paddingLeft: "8px" },
  ".cm-completionDetail": { color: "var(--quiet)", fontStyle: "normal", paddingLeft: "8px" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-diagnostic": { padding: "8px 12px", whiteSpace: "pre-wrap", fontFamily: "var(--mantine-font-family)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--surface)", borderRadius: "4px", padding: "2px 10px", cursor: "pointer", marginLeft: "0", marginTop: "6px", display: "block" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textDecorationSkipInk: "none", textUnderlineOffset: "3px", backgroundColor: "var(--bad-soft)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)", textUnderlineOffset: "3px" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--hover)", border: "1px solid var(--line)", color: "var(--quiet)" },
  ".cm-insertedLine, .cm-changedLine": { backgroundColor: "var(--good-soft) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--bad-soft) !important", fontFamily: "var(--mono)" },
  ".cm-changedText": { background: "color-mix(in srgb, var(--good) 30%, transparent) !important" },
  ".cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--bad) 30%, transparent) !important" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"…" !important' },
  ".cm-collapsedLines": { background: "var(--hover) !important", color: "var(--quiet) !important" },
});

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--info)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--accent)" },
]);

export const appearance = [frame, syntaxHighlighting(highlight)];

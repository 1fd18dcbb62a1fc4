/** The syntax of the languages of pipelines. Each is loaded when a text has it. */
import { Compartment, type Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

const place = new Compartment();

const load = async (language: string): Promise<Extension> =>
  language === "sql" ? (await import("@codemirror/lang-sql")).sql() : (await import("@codemirror/lang-yaml")).yaml();

/** The place of the syntax among the extensions of an editor. */
export const syntax: Extension = place.of([]);

/** Loads the syntax of a language into an editor, which shows its text meanwhile. */
export async function loadSyntax(view: EditorView, language: string): Promise<void> {
  view.dispatch({ effects: place.reconfigure(await load(language)) });
}

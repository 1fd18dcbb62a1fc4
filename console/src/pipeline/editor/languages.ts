import { sql } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import type { Extension } from "@codemirror/state";

/** Returns the syntax of a language of pipelines. */
export const syntaxOf = (language: string): Extension => (language === "sql" ? sql() : yaml());

/** The places of problems in a document. The API counts characters, the editor UTF-16 units. */
import type { Text } from "@codemirror/state";
import type { Position, Problem } from "../../api/types";

export interface Span { from: number; to: number }

/** Returns the span of a problem; null for a problem without a place in this document. */
export function spanOf(problem: Problem, document: Text): Span | null {
  if (!problem.line) return null;
  const line = document.line(Math.min(problem.line, document.lines));
  const characters = [...line.text];
  const start = Math.min((problem.column ?? 1) - 1, characters.length);
  const end = problem.length ? start + problem.length : characters.length;
  const from = line.from + characters.slice(0, start).join("").length;
  const to = line.from + characters.slice(0, end).join("").length;
  return from < to ? { from, to } : { from: line.from, to: Math.max(line.to, line.from) };
}

/** Returns the position of an index: line and character, from 1. */
export function positionOf(index: number, document: Text): Position {
  const line = document.lineAt(index);
  return { line: line.number, column: [...line.text.slice(0, index - line.from)].length + 1 };
}

/** Returns the index of a position; one beyond its line is the end of the line. */
export function indexOf({ line, column }: Position, document: Text): number {
  const found = document.line(Math.min(line, document.lines));
  return found.from + [...found.text].slice(0, column - 1).join("").length;
}

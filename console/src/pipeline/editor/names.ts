/** Names of tables, topics and streams of a connection of the server, completed where an option names one. */
import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { api, query } from "../../api/client";
import { connectionPath } from "../../connections/connections";

/** `table: or`, `topic = 'or`: an option and the beginning of its value. */
const OPTION = /(?:^|[\s{,('"])(table|topic|stream|subject|bucket|list|channel)['"]?\s*[:=]\s*\[?\s*["']?([^"'\s,{}[\]()]*)$/;
const CONNECTION = /(?:^|[\s{,('"])connection['"]?\s*[:=]\s*["']?([\w-]+)/m;
const FRESH = 60_000;

const lists = new Map<string, { read: number; names: Promise<string[]> }>();

/** Returns the names at the cursor; null where no option has such names. */
export async function completeNames(context: CompletionContext): Promise<CompletionResult | null> {
  const { doc } = context.state;
  const line = doc.lineAt(context.pos);
  const option = OPTION.exec(line.text.slice(0, context.pos - line.from));
  const connection = option && CONNECTION.exec(nodeText(doc.toString(), context.pos))?.[1];
  if (!option || !connection) return null;
  const [, kind, typed] = option as unknown as [string, string, string];
  const names = await namesOf(connection, kind);
  if (!names.length) return null;
  return { from: context.pos - typed.length, options: names.map((label) => ({ label, type: "enum", detail: `${kind} of ${connection}` })) };
}

/** Returns the text of the node around a position: its brackets, or its indented lines. */
export function nodeText(text: string, position: number): string {
  const opening = Math.max(...["{", "("].map((sign) => text.lastIndexOf(sign, position - 1)));
  const closing = Math.max(...["}", ")"].map((sign) => text.lastIndexOf(sign, position - 1)));
  if (opening > closing) {
    const end = text.slice(position).search(/[})]/);
    return text.slice(opening, end < 0 ? undefined : position + end);
  }
  const lines = text.split("\n");
  const current = text.slice(0, position).split("\n").length - 1;
  const depth = indent(lines[current] ?? "");
  const within = (line: string | undefined) => line !== undefined && (!line.trim() || indent(line) >= depth);
  let [first, last] = [current, current];
  while (within(lines[first - 1])) first -= 1;
  while (within(lines[last + 1])) last += 1;
  return lines.slice(first, last + 1).filter((each) => indent(each) === depth).join("\n");
}

const indent = (line: string): number => line.length - line.trimStart().length;

/** Returns the names of a connection for an option, which are read once a minute; none if that fails. */
function namesOf(connection: string, option: string): Promise<string[]> {
  const key = `${option} ${connection}`;
  const known = lists.get(key);
  if (known && Date.now() - known.read < FRESH) return known.names;
  const [kind, asked] = option === "table" ? ["tables", {}] : ["topics", { option }];
  const names = api.get<Record<string, string[]>>(`${connectionPath(connection)}/${kind}${query({ ...asked, limit: 1000 })}`).then((found) => found[kind] ?? [], () => []);
  lists.set(key, { read: Date.now(), names });
  return names;
}

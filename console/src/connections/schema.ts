/** Fields of a form, made from the JSON Schema of a connector. */

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  anyOf?: Schema[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  type?: string;
  format?: string;
  writeOnly?: boolean;
  enum?: (string | number)[];
  const?: string;
  default?: unknown;
  description?: string;
}
export type Values = Record<string, unknown>;
export type FieldKind = "text" | "number" | "secret" | "choice" | "switch" | "group" | "json";

export interface Field {
  name: string;
  kind: FieldKind;
  description: string;
  required: boolean;
  byDefault: string;
  choices: string[];
  fields: Field[];
}

/** Options that select what a node reads or writes. They belong into the pipeline. */
const OF_NODES = new Set(["table", "topic", "query", "schema", "format", "changes", "mode", "key", "static", "lookup", "watch", "phases"]);

/** Returns the fields of the options of a connection, the required ones first. */
export function fieldsOf(root: Schema): Field[] {
  const fields = fieldsIn(root, root).filter((each) => !OF_NODES.has(each.name));
  return [...fields.filter(isImportant), ...fields.filter((each) => !isImportant(each))];
}

/** Whether a field is shown before a user asks for it. */
export function isImportant(field: Field): boolean {
  return field.required || /^(url|urls|brokers|servers|host|hosts|address|path|region|auth|tls)$/.test(field.name);
}

function fieldsIn(schema: Schema, root: Schema, depth = 0): Field[] {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, each]) => fieldOf(name, each, root, required.has(name), depth));
}

function fieldOf(name: string, schema: Schema, root: Schema, required: boolean, depth: number): Field {
  const branches = branchesOf(schema, root).filter((each) => each.type !== "null");
  const choices = branches.flatMap((each) => each.enum ?? (each.const === undefined ? [] : [each.const])).map(String);
  const objects = branches.filter((each) => each.properties);
  const known = new Map(objects.flatMap((each) => fieldsIn(each, root, depth + 1)).map((each) => [each.name, each]));
  const kind: FieldKind =
    objects.length && depth < 2 ? "group"
    : branches.some((each) => each.writeOnly || each.format === "password") ? "secret"
    : choices.length && choices.length >= branches.length ? "choice"
    : branches.every((each) => each.type === "boolean") ? "switch"
    : branches.every((each) => each.type === "integer" || each.type === "number") ? "number"
    : branches.some((each) => each.type === "string") ? "text"
    : "json";
  return {
    name, kind, required, choices, fields: [...known.values()],
    description: schema.description ?? "", byDefault: shown(schema.default),
  };
}

function branchesOf(schema: Schema, root: Schema): Schema[] {
  if (schema.$ref) {
    const found = root.$defs?.[schema.$ref.split("/").pop() ?? ""];
    return found ? branchesOf(found, root) : [];
  }
  const alternatives = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return alternatives.length ? alternatives.flatMap((each) => branchesOf(each, root)) : [schema];
}

function shown(value: unknown): string {
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Whether a value stands for a secret that the server has. */
export function isSet(value: unknown): boolean {
  return typeof value === "object" && value !== null && (value as { set?: unknown }).set === true;
}

/** Returns values without empty texts and empty groups. */
export function compact(values: Values): Values {
  const kept: Values = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === undefined) continue;
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !isSet(value)) {
      const inner = compact(value as Values);
      if (Object.keys(inner).length) kept[name] = inner;
    } else kept[name] = value;
  }
  return kept;
}

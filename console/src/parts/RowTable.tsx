import { useState } from "react";
import type { Column } from "../api/types";
import classes from "./RowTable.module.css";

export type Row = (string | null)[];
interface Props { label: string; columns: Column[]; rows: Row[] }

const NUMBER = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL)\b/;
const NESTED = /^(STRUCT|ARRAY|MAP|VARIANT)\b/;
const LONG = 60;

/** Rows with the types of their columns. Long and nested values open in their place. */
export function RowTable({ label, columns, rows }: Props) {
  return (
    <div className={classes.scroll} tabIndex={0} role="region" aria-label={label}>
      <table className={classes.table}>
        <thead>
          <tr>
            {columns.map((each, index) => (
              <th key={index} scope="col" data-right={NUMBER.test(each.type) || undefined}>
                {each.name}
                <span className={classes.type} title={each.type}>{each.type.toLowerCase()}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((value, column) => (
                <td key={column} data-right={NUMBER.test(columns[column]?.type ?? "") || undefined}>
                  <Value value={value} type={columns[column]?.type ?? ""} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A value: null and the empty text are marked, so that they differ. */
function Value({ value, type }: { value: string | null; type: string }) {
  const [open, setOpen] = useState(false);
  if (value === null) return <span className={classes.mark}>null</span>;
  if (value === "") return <span className={classes.mark}>empty</span>;
  if (value.length <= LONG && !value.includes("\n")) return <>{value}</>;
  return (
    <button type="button" className={classes.long} aria-expanded={open} onClick={() => setOpen(!open)}>
      {open ? <pre>{NESTED.test(type) ? pretty(value) : value}</pre> : `${value.slice(0, LONG).replaceAll("\n", "⏎")}…`}
    </button>
  );
}

function pretty(value: string): string {
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

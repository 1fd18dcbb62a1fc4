import type { Problem } from "../../api/types";
import { plural } from "../../format/numbers";
import { CHANGED_PLAN, type Check } from "./useCheck";
import classes from "./Editor.module.css";

interface Props {
  check: Check;
  /** The problems of a check with Spark, which come before those of the check while typing. */
  found?: Problem[];
  /** Whether a check with Spark is under way. */
  deep?: boolean;
}

/** One line about the check of the present text. */
export function CheckStatus({ check, found, deep }: Props) {
  const [tone, text] = deep ? ["calm", "Checking the columns…"] : found?.some(isError) ? ["bad", plural(found.length, "error")] : describe(check);
  return (
    <span className={classes.status} data-tone={tone} role="status">
      {text}
    </span>
  );
}

const isError = ({ code }: Problem): boolean => code !== CHANGED_PLAN;

function describe({ result, valid, error, checking }: Check): [string, string] {
  if (error) return ["warn", "Not checked: " + (error as Error).message];
  if (checking || !result) return ["calm", "Checking…"];
  if (!result.ok && valid) return ["warn", "Valid; the state does not support the change"];
  if (!result.ok) return ["bad", plural(result.errors.length, "error")];
  if (result.warnings.length) return ["warn", `Valid, ${plural(result.warnings.length, "warning")}`];
  return ["good", "Valid"];
}

import { plural } from "../../format/numbers";
import type { Check } from "./useCheck";
import classes from "./Editor.module.css";

/** One line about the check of the present text. */
export function CheckStatus({ check }: { check: Check }) {
  const [tone, text] = describe(check);
  return (
    <span className={classes.status} data-tone={tone} role="status">
      {text}
    </span>
  );
}

function describe({ result, valid, error, checking }: Check): [string, string] {
  if (error) return ["warn", "Not checked: " + (error as Error).message];
  if (checking || !result) return ["calm", "Checking…"];
  if (!result.ok && valid) return ["warn", "Valid; the state does not support the change"];
  if (!result.ok) return ["bad", plural(result.errors.length, "error")];
  if (result.warnings.length) return ["warn", `Valid, ${plural(result.warnings.length, "warning")}`];
  return ["good", "Valid"];
}

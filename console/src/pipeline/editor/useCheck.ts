import { useEffect, useState } from "react";
import { api } from "../../api/client";
import type { CheckResult } from "../../api/types";

export const CHECK_DELAY = 300;
/** The code of changes that the state does not support. */
export const CHANGED_PLAN = "changed-plan";

interface Checked { text: string; result: CheckResult | null; error: unknown }
export interface Check {
  /** The result for the present text; null while it is checked. */
  result: CheckResult | null;
  /** The last result, also while a newer text is checked. */
  last: CheckResult | null;
  /** Whether the present text is valid in itself. The state may not support its changes. */
  valid: boolean;
  error: unknown;
  checking: boolean;
}

/** Checks a text by the static check after the last key. `null` is not checked. */
export function useCheck(path: string, text: string | null, name?: string): Check {
  const [checked, setChecked] = useState<Checked | null>(null);
  useEffect(() => {
    if (text === null) return;
    const abort = new AbortController();
    const timer = window.setTimeout(async () => {
      try {
        const body = name === undefined ? { text } : { text, name };
        const result = await api.post<CheckResult>(path, body, abort.signal);
        setChecked({ text, result, error: null });
      } catch (error) {
        if (!abort.signal.aborted) setChecked({ text, result: null, error });
      }
    }, CHECK_DELAY);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [path, text, name]);
  const current = checked?.text === text ? checked : null;
  return {
    result: current?.result ?? null,
    last: checked?.result ?? null,
    valid: current?.result?.errors.every((each) => each.code === CHANGED_PLAN) ?? false,
    error: current?.error ?? null,
    checking: text !== null && current === null,
  };
}

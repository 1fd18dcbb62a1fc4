/** Unsaved texts of this tab, by pipeline: they survive a change of the page, not of the tab. */
import { useEffect, useSyncExternalStore } from "react";

const drafts = new Map<string, string>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function setDraft(id: string, text: string | null): void {
  if (text === null) drafts.delete(id);
  else drafts.set(id, text);
  listeners.forEach((each) => each());
}

/** Returns the draft of a pipeline. The browser asks before it discards one. */
export function useDraft(id: string): string | undefined {
  const draft = useSyncExternalStore(subscribe, () => drafts.get(id));
  useEffect(() => {
    if (draft === undefined) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [draft === undefined]);
  return draft;
}

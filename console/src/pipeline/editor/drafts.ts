/** Unsaved texts of this tab, by pipeline: they survive a change of the page, not of the tab. */
import { useEffect, useSyncExternalStore } from "react";

/** A text, and the version that it was made from; 0 is none. */
export interface Draft { text: string; base: number }

const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function setDraft(id: string, draft: Draft | null): void {
  if (draft === null) drafts.delete(id);
  else drafts.set(id, draft);
  listeners.forEach((each) => each());
}

/** Returns the draft of a pipeline as it is now. */
export const draftOf = (id: string): Draft | undefined => drafts.get(id);

/** Returns the draft of a pipeline. The browser asks before it discards one. */
export function useDraft(id: string): Draft | undefined {
  const draft = useSyncExternalStore(subscribe, () => drafts.get(id));
  useEffect(() => {
    if (draft === undefined) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [draft === undefined]);
  return draft;
}

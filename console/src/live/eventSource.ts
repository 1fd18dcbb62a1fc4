/** The stream of changes of one tab, which opens again after each end. */

export interface Changes<T> { changed: T[]; gone: string[] }
interface Handlers<T> {
  onChanges: (changes: Changes<T>) => void;
  onAlive: () => void;
  onLost: () => void;
}

const RETRY = 2000;
const SILENCE = 25_000;

/** Opens the stream and returns the function that closes it. */
export function openStream<T>(path: string, handlers: Handlers<T>): () => void {
  let source: EventSource | null = null;
  let retry: number | undefined;
  let silence: number | undefined;

  function alive(): void {
    window.clearTimeout(silence);
    silence = window.setTimeout(lost, SILENCE);
    handlers.onAlive();
  }

  function lost(): void {
    source?.close();
    window.clearTimeout(silence);
    window.clearTimeout(retry);
    retry = window.setTimeout(open, RETRY);
    handlers.onLost();
  }

  function open(): void {
    source = new EventSource(path);
    source.addEventListener("pipelines", (event) => {
      alive();
      handlers.onChanges(JSON.parse(event.data) as Changes<T>);
    });
    source.addEventListener("age", alive);
    source.onerror = lost;
  }

  open();
  return () => {
    source?.close();
    window.clearTimeout(retry);
    window.clearTimeout(silence);
  };
}

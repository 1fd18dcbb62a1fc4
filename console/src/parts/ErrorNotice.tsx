import { Button } from "@mantine/core";
import { ApiError, Disconnected } from "../api/client";
import { InlineCode } from "./InlineCode";
import { Notice } from "./Notice";

interface Props { error: unknown; title?: string; onRetry?: () => void }

/** An error of a request: forbidden, disconnected, or the problems of the answer. */
export function ErrorNotice({ error, title, onRetry }: Props) {
  const retry = onRetry && (
    <Button size="xs" variant="default" onClick={onRetry}>
      Try again
    </Button>
  );
  if (error instanceof Disconnected) {
    return (
      <Notice tone="warn" title="The server does not answer" role="alert" actions={retry}>
        The page connects again by itself.
      </Notice>
    );
  }
  if (error instanceof ApiError) {
    const forbidden = error.status === 403;
    return (
      <Notice tone={forbidden ? "calm" : "bad"} title={forbidden ? "Not permitted" : (title ?? error.message)} role="alert" actions={forbidden ? undefined : retry}>
        {(forbidden || title) && <div>{error.message}</div>}
        {error.hint && <div className="quiet"><InlineCode text={error.hint} /></div>}
      </Notice>
    );
  }
  return <Notice tone="bad" title={title ?? "The page has an error"} role="alert" actions={retry}>{String(error)}</Notice>;
}

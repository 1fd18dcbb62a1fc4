import { Button } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { Notice } from "../parts/Notice";

/** A secret that is shown once. */
export function Once({ title, text }: { title: string; text: string }) {
  const clipboard = useClipboard();
  return (
    <Notice
      tone="good" title={title} role="status"
      actions={<Button size="xs" variant="default" onClick={() => clipboard.copy(text)}>{clipboard.copied ? "Copied" : "Copy"}</Button>}
    >
      <code className="mono" style={{ userSelect: "all", overflowWrap: "anywhere" }}>{text}</code>
    </Notice>
  );
}

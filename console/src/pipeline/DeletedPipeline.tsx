import { Button } from "@mantine/core";
import { Link } from "wouter";
import { Notice } from "../parts/Notice";
import { useDraft } from "./editor/drafts";

interface Props { id: string; name: string }

/** A pipeline that was deleted while its page was open. A text that is not applied is kept. */
export function DeletedPipeline({ id, name }: Props) {
  const draft = useDraft(id);
  const actions = (
    <>
      {draft && <Button size="xs" component="a" href={`/new#text=${encodeURIComponent(draft.text)}`}>New pipeline from your text</Button>}
      <Button size="xs" variant="default" component={Link} href="/">All pipelines</Button>
    </>
  );
  return (
    <Notice tone="warn" role="alert" title={`The pipeline ${name} was deleted`} actions={actions}>
      {draft ? "Your changes are not lost: make a new pipeline from them." : "The audit has its deletion."}
    </Notice>
  );
}

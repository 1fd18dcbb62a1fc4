import { Button, FileButton, Group, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, lazy, Suspense, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api, rejectedText } from "../api/client";
import type { Problem, Summary } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Notice } from "../parts/Notice";
import { usePageTitle } from "../parts/usePageTitle";
import { CheckStatus } from "../pipeline/editor/CheckStatus";
import { CodeEditor, type EditorHandle } from "../pipeline/editor/CodeEditor";
import { draftOf, setDraft } from "../pipeline/editor/drafts";
import { EditorKeys } from "../pipeline/editor/EditorKeys";
import classes from "../pipeline/editor/Editor.module.css";
import { ProblemList } from "../pipeline/editor/ProblemList";
import { useCheck } from "../pipeline/editor/useCheck";
import { useMay } from "../session/SessionProvider";
import { type Conversion, Converted, isForeign, systemOf } from "./Converted";
import beside from "./Converted.module.css";
import { Templates } from "./Templates";

const DraftPanels = lazy(() => import("../pipeline/preview/DraftPanels"));
const NONE: Problem[] = [];
/** The draft of the pipeline that does not exist yet: it survives the end of the session and other pages. */
const NEW = "";
const NO_NODES = {};
const SCRIPT = /^\s*(?:--.*\n\s*)*(CREATE|INSERT|SELECT|SET|WITH)\b/i;

/** The form of a new pipeline: from a template, a file, or a text of one's own. */
export default function NewPipelinePage() {
  usePageTitle("New pipeline");
  const [, navigate] = useLocation();
  const mayData = useMay("data");
  const [name, setName] = useState("");
  const [template, setTemplate] = useState<string | null>(null);
  const [text, setText] = useState(() => new URLSearchParams(window.location.hash.slice(1)).get("text") ?? draftOf(NEW)?.text ?? "");
  const editor = useRef<EditorHandle>(null);
  const draft = name || "draft";
  const check = useCheck("/check", text.trim() ? text : null, draft);
  const convert = useMutation({ mutationFn: () => api.post<Conversion>("/convert", { name: draft, text }) });
  const create = useMutation({
    mutationFn: () => api.post<Summary>("/pipelines", { name, text }),
    onSuccess: ({ id }) => {
      setDraft(NEW, null);
      navigate(`/pipelines/${id}`);
    },
  });
  const foreign = convert.data && isForeign(convert.data) ? convert.data : null;
  const rejected = rejectedText(create.error);
  const errors = rejected ?? check.last?.errors ?? NONE;

  function change(next: string): void {
    setText(next);
    setDraft(NEW, next.trim() ? { text: next, base: 0 } : null);
    convert.reset();
    create.reset();
  }

  async function open(file: File | null): Promise<void> {
    if (!file) return;
    change(await file.text());
    setTemplate(null);
    setName((last) => last || file.name.replace(/\.[^.]*$/, "").toLowerCase().replace(/[^a-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64));
  }

  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }

  return (
    <Stack gap="sm">
      <h1>New pipeline</h1>
      <Templates chosen={template} onChoose={(each) => { setTemplate(each.name); change(each.text); setName((last) => last || each.name); }} />
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Group align="end" gap="md">
            <TextInput label="Name" description="Lower-case letters, digits, - and _" required w={360} maw="100%" pattern="[a-z0-9]([a-z0-9_\-]*[a-z0-9])?" maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} />
            <FileButton onChange={(file) => void open(file)} accept=".yaml,.yml,.sql,.json,.toml,text/*">
              {(props) => <Button {...props} variant="default">Open a file</Button>}
            </FileButton>
          </Group>
          <div className={beside.beside} data-open={foreign !== null}>
            <section className="surface" aria-label="Text of the pipeline">
              <div className={classes.tools}>
                {text.trim() ? <CheckStatus check={check} found={rejected} deep={create.isPending} /> : <span className={classes.status}>Choose a template, open a file, or write</span>}
                {text.trim() && <Button size="xs" variant="default" loading={convert.isPending} onClick={() => convert.mutate()}>Show as YAML</Button>}
                <Button type="submit" loading={create.isPending} disabled={!name || !check.valid}>Create</Button>
              </div>
              <div className={classes.text}>
                <CodeEditor ref={editor} label="Text of the new pipeline" language={SCRIPT.test(text) ? "sql" : "yaml"} text={text} subject={{ path: "", name: draft }} errors={errors} warnings={check.last?.warnings ?? NONE} onChange={change} />
              </div>
              <ProblemList errors={errors} warnings={check.last?.warnings ?? NONE} onShow={(each) => editor.current?.show(each)} />
            </section>
            {foreign && <Converted conversion={foreign} onUse={() => change(foreign.text)} />}
          </div>
        </Stack>
      </form>
      {create.isError && <ErrorNotice error={create.error} title={rejected && "Not created"} />}
      {convert.data && (
        <Notice tone="calm" role="status" title={foreign ? `The text is ${systemOf(foreign.language)}` : "The text is YAML of Penstock"}>
          {foreign ? "It runs as it is. Use the YAML beside it to change it with the words of Penstock." : "It needs no conversion."}
        </Notice>
      )}
      {convert.isError && <ErrorNotice error={convert.error} title="The text cannot be converted" />}
      <EditorKeys />
      {mayData && text.trim() !== "" && (
        <Suspense fallback={<Loading />}>
          <DraftPanels draft={{ path: "", body: { name: draft, text } }} nodes={check.last?.nodes ?? NO_NODES} valid={check.valid} />
        </Suspense>
      )}
    </Stack>
  );
}

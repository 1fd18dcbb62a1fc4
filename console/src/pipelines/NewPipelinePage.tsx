import { Button, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import type { Problem, Summary } from "../api/types";
import { ErrorNotice } from "../parts/ErrorNotice";
import { usePageTitle } from "../parts/usePageTitle";
import { CheckStatus } from "../pipeline/editor/CheckStatus";
import { CodeEditor, type EditorHandle } from "../pipeline/editor/CodeEditor";
import { EditorKeys } from "../pipeline/editor/EditorKeys";
import classes from "../pipeline/editor/Editor.module.css";
import { ProblemList } from "../pipeline/editor/ProblemList";
import { useCheck } from "../pipeline/editor/useCheck";

const FIRST = `sources:
  numbers: {type: generate, rate: 10, fields: {id: sequence}}
sinks:
  out: {type: print, from: numbers}
`;
const NONE: Problem[] = [];
const SCRIPT = /^\s*(?:--.*\n\s*)*(CREATE|INSERT|SELECT|SET|WITH)\b/i;

/** The form of a new pipeline: its name and its text, which is checked as it is typed. */
export default function NewPipelinePage() {
  usePageTitle("New pipeline");
  const [, navigate] = useLocation();
  const [name, setName] = useState("");
  const [text, setText] = useState(() => new URLSearchParams(window.location.hash.slice(1)).get("text") ?? FIRST);
  const editor = useRef<EditorHandle>(null);
  const check = useCheck("/check", text, name || "draft");
  const create = useMutation({
    mutationFn: () => api.post<Summary>("/pipelines", { name, text }),
    onSuccess: ({ id }) => navigate(`/pipelines/${id}`),
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }

  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <h1>New pipeline</h1>
        <TextInput label="Name" description="Lower-case letters, digits, - and _" required maw={360} autoFocus pattern="[a-z0-9]([a-z0-9_\-]*[a-z0-9])?" maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <section className="surface" aria-label="Text of the pipeline">
          <div className={classes.tools}>
            <CheckStatus check={check} />
            <Button type="submit" loading={create.isPending} disabled={!name || !check.result?.ok}>Create</Button>
          </div>
          <div className={classes.text}>
            <CodeEditor ref={editor} label="Text of the new pipeline" language={SCRIPT.test(text) ? "sql" : "yaml"} text={text} subject={{ path: "", name: "draft" }} errors={check.last?.errors ?? NONE} warnings={check.last?.warnings ?? NONE} onChange={setText} />
          </div>
          <ProblemList errors={check.last?.errors ?? NONE} warnings={check.last?.warnings ?? NONE} onShow={(each) => editor.current?.show(each)} />
        </section>
        <EditorKeys />
        {create.isError && <ErrorNotice error={create.error} />}
      </Stack>
    </form>
  );
}

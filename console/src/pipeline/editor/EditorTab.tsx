import { Button, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { api, rejectedText } from "../../api/client";
import { pipelinePath, useApply, useVersions } from "../../api/queries";
import type { CheckResult, Detail, Problem } from "../../api/types";
import { isActive } from "../../format/health";
import { Loading } from "../../parts/Loading";
import { Notice } from "../../parts/Notice";
import { useMay } from "../../session/SessionProvider";
import { ApplyError } from "./ApplyError";
import { CheckStatus } from "./CheckStatus";
import { CodeEditor, type EditorHandle } from "./CodeEditor";
import { setDraft, useDraft } from "./drafts";
import classes from "./Editor.module.css";
import { EditorKeys } from "./EditorKeys";
import { PlanResult } from "./PlanResult";
import { ProblemList } from "./ProblemList";
import { useCheck } from "./useCheck";

const DraftPanels = lazy(() => import("../preview/DraftPanels"));
const DifferenceView = lazy(() => import("./DifferenceView"));
const NONE: Problem[] = [];
const NO_NODES = {};

/** The text of a pipeline: edit, check, compare with the applied version, apply. */
export default function EditorTab({ detail }: { detail: Detail }) {
  const { id, name, language } = detail;
  const mayEdit = useMay("edit");
  const mayData = useMay("data");
  const [search] = useSearchParams();
  const letter = search.get("letter");
  const line = Number(search.get("line"));
  const draft = useDraft(id);
  const versions = useVersions(id);
  const [view, setView] = useState("text");
  const [note, setNote] = useState("");
  const editor = useRef<EditorHandle>(null);
  const file = detail.text ?? "";
  const text = draft?.text ?? file;
  const base = draft?.base ?? detail.version ?? 0;
  const applied = versions.data?.[0]?.text ?? file;
  const check = useCheck(`${pipelinePath(id)}/check`, mayEdit ? text : null);
  const apply = useApply(id);
  const plan = useMutation({
    mutationFn: () => api.post<CheckResult>(`${pipelinePath(id)}/check`, { text, level: "plan" }),
  });
  const found = plan.data && !plan.data.ok ? plan.data.errors : rejectedText(apply.error ?? plan.error);
  const errors = found ?? check.last?.errors ?? NONE;
  const pending = text !== file || detail.changed;

  useEffect(() => {
    if (line) editor.current?.show({ code: "", message: "", line });
  }, [line]);

  function change(next: string): void {
    setDraft(id, next === file ? null : { text: next, base });
    plan.reset();
    apply.reset();
  }

  function send(fresh: boolean): void {
    apply.mutate({ text, note, fresh, base }, {
      onSuccess: () => {
        setDraft(id, null);
        setNote("");
        plan.reset();
      },
    });
  }

  function show(problem: Problem): void {
    setView("text");
    window.requestAnimationFrame(() => editor.current?.show(problem));
  }

  return (
    <Stack gap="sm">
      {!mayEdit && <Notice tone="calm" title="You may read this text">The right edit permits changes.</Notice>}
      <section className="surface" aria-label="Text of the pipeline">
        <div className={classes.tools}>
          {mayEdit ? <CheckStatus check={check} found={found} deep={plan.isPending || apply.isPending} /> : <span className={classes.status}>Read only</span>}
          <SegmentedControl size="xs" aria-label="View" value={view} onChange={setView} data={[{ value: "text", label: "Text" }, { value: "difference", label: "Difference" }]} />
          {mayEdit && draft !== undefined && (
            <Button size="xs" variant="subtle" color="gray" onClick={() => change(file)}>
              Discard changes
            </Button>
          )}
          {mayEdit && (
            <Button size="xs" variant="default" loading={plan.isPending} disabled={!check.valid} onClick={() => plan.mutate()}>
              Check against the state
            </Button>
          )}
        </div>
        <div className={classes.text}>
          {view === "text" ? (
            <CodeEditor ref={editor} label={`Text of ${name}`} language={language} text={text} readOnly={!mayEdit} subject={{ path: pipelinePath(id) }} errors={errors} warnings={check.last?.warnings ?? NONE} onChange={change} />
          ) : (
            <Suspense fallback={<Loading />}>
              <DifferenceView label={`Difference of ${name} to the applied version`} language={language} before={applied} after={text} />
            </Suspense>
          )}
        </div>
        <ProblemList errors={errors} warnings={check.last?.warnings ?? NONE} onShow={show} />
        {mayEdit && (
          <form className={classes.apply} onSubmit={(event) => { event.preventDefault(); send(false); }}>
            <TextInput className={classes.note} aria-label="Note of the version" placeholder="Note, such as: read all topics" maxLength={500} value={note} onChange={(event) => setNote(event.currentTarget.value)} />
            <Button type="submit" loading={apply.isPending} disabled={!check.valid || !pending}>
              {isActive(detail.health.state) ? "Apply and restart" : "Apply"}
            </Button>
          </form>
        )}
      </section>
      {plan.data && <PlanResult result={plan.data} />}
      {plan.isError && <ApplyError error={plan.error} name={name} busy={false} onFresh={() => send(true)} />}
      {apply.isError && <ApplyError error={apply.error} name={name} busy={apply.isPending} onFresh={() => send(true)} />}
      {apply.data && <Notice tone="good" title={`Applied as version ${apply.data.number}`} role="status" />}
      {mayEdit && <EditorKeys />}
      {mayEdit && mayData && (
        <Suspense fallback={<Loading />}>
          <DraftPanels draft={{ path: pipelinePath(id), body: { text } }} nodes={check.last?.nodes ?? NO_NODES} valid={check.valid} letter={letter ? { id, letter } : undefined} />
        </Suspense>
      )}
    </Stack>
  );
}

import { Button, Group, Stack, Table, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { api } from "../api/client";
import type { Problem } from "../api/types";
import { AskButton } from "../parts/AskButton";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Time } from "../parts/Time";
import { usePageTitle } from "../parts/usePageTitle";
import { ProblemList } from "../pipeline/editor/ProblemList";
import { useMay } from "../session/SessionProvider";

interface FunctionVersion { name: string; version: number; text: string; signatures: string[]; author: string; note: string; time: string }
interface Checked { ok: boolean; signatures: string[]; errors: Problem[] }
const FIRST = `from penstock import udf


@udf
def initials(name: str) -> str:
    return "".join(word[0] for word in name.split())
`;

/** The functions of the server, which the SQL of all pipelines can call. */
export default function FunctionsPage() {
  usePageTitle("Functions");
  const mayEdit = useMay("edit");
  const cache = useQueryClient();
  const functions = useQuery({ queryKey: ["functions"], queryFn: () => api.get<FunctionVersion[]>("/functions") });
  const [open, setOpen] = useState<{ name: string; text: string } | null>(null);
  const remove = useMutation({
    mutationFn: (name: string) => api.delete(`/functions/${name}`),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["functions"] }),
  });
  if (functions.isError) return <ErrorNotice error={functions.error} onRetry={() => functions.refetch()} />;
  const create = mayEdit && <Button onClick={() => setOpen({ name: "", text: FIRST })}>New functions</Button>;
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <h1 style={{ margin: 0 }}>Functions</h1>
        {functions.data?.length !== 0 && create}
      </Group>
      {open && <FunctionForm key={open.name} first={open} onDone={() => setOpen(null)} />}
      {remove.isError && <ErrorNotice error={remove.error} />}
      <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="Functions">
        {!functions.data && <Loading />}
        {functions.data?.length === 0 && <Empty title="No functions yet" actions={open ? undefined : create}>The SQL of all pipelines can call the functions of a Python file that is registered here.</Empty>}
        {functions.data && functions.data.length > 0 && (
          <Table verticalSpacing="sm" horizontalSpacing="md" miw={640}>
            <Table.Thead>
              <Table.Tr>{["File", "Functions", "Version", "Actions"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {functions.data.map((each) => (
                <Table.Tr key={each.name}>
                  <Table.Td fw={600}>{each.name}.py</Table.Td>
                  <Table.Td>{each.signatures.map((signature) => <div key={signature} className="mono">{signature}</div>)}</Table.Td>
                  <Table.Td>v{each.version} <span className="quiet">by {each.author} <Time at={each.time} /></span></Table.Td>
                  <Table.Td>
                    {mayEdit && (
                      <Group gap="xs" wrap="nowrap">
                        <Button size="xs" variant="default" onClick={() => setOpen(each)}>Edit</Button>
                        <AskButton size="xs" question={`Delete ${each.name}?`} answer="Delete" onConfirm={() => remove.mutate(each.name)}>Delete</AskButton>
                      </Group>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </div>
    </Stack>
  );
}

/** The text of a file of functions, checked as it is typed. */
function FunctionForm({ first, onDone }: { first: { name: string; text: string }; onDone: () => void }) {
  const cache = useQueryClient();
  const area = useRef<HTMLTextAreaElement>(null);
  const [name, setName] = useState(first.name);
  const [text, setText] = useState(first.text);
  const [note, setNote] = useState("");
  const [checked] = useDebouncedValue({ name: name || "draft", text }, 300);
  const check = useQuery({ queryKey: ["check functions", checked], queryFn: ({ signal }) => api.post<Checked>("/functions/check", checked, signal), retry: false });
  const register = useMutation({
    mutationFn: () => api.post<FunctionVersion>("/functions", { name, text, note }),
    onSuccess: () => {
      onDone();
      return cache.invalidateQueries({ queryKey: ["functions"] });
    },
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    register.mutate();
  }
  function show(problem: Problem): void {
    const lines = text.split("\n");
    const start = lines.slice(0, (problem.line ?? 1) - 1).reduce((sum, line) => sum + line.length + 1, 0) + (problem.column ?? 1) - 1;
    area.current?.focus();
    area.current?.setSelectionRange(start, start + (problem.length ?? 1));
  }
  return (
    <form className="surface" onSubmit={submit} style={{ padding: 16 }} aria-label="Functions">
      <Stack gap="sm">
        <TextInput label="Name of the file" description="Lower-case letters, digits and _" required maw={360} maxLength={63} pattern="[a-z][a-z0-9_]*" disabled={first.name !== ""} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Textarea ref={area} label="Python" autosize minRows={8} maxRows={30} spellCheck={false} styles={{ input: { fontFamily: "var(--mono)", fontSize: 13 } }} value={text} onChange={(event) => setText(event.currentTarget.value)} />
        {check.isError && <ErrorNotice error={check.error} />}
        {check.data && <ProblemList errors={check.data.errors} warnings={[]} onShow={show} />}
        {check.data?.ok && <div aria-label="Signatures">{check.data.signatures.map((each) => <div key={each} className="mono">{each}</div>)}</div>}
        <TextInput label="Note" maw={480} maxLength={500} value={note} onChange={(event) => setNote(event.currentTarget.value)} />
        <Group gap="xs">
          <Button type="submit" loading={register.isPending} disabled={!name || !check.data?.ok}>Register</Button>
          <Button variant="subtle" onClick={onDone}>Cancel</Button>
        </Group>
        {register.isError && <ErrorNotice error={register.error} />}
      </Stack>
    </form>
  );
}

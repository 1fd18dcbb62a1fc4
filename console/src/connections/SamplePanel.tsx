import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import type { Column } from "../api/types";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Notice } from "../parts/Notice";
import { RowTable } from "../parts/RowTable";
import { connectionPath } from "./connections";

interface Sample {
  messages: { text: string | null; bytes: number | null; cut: boolean }[];
  columns: Column[];
  more_columns: boolean;
  errors: { message: string; hint: string | null }[];
}

/** The first messages of a topic, and the columns that a source without a schema has. */
export function SamplePanel({ connection, option, topic }: { connection: string; option: string; topic: string }) {
  const [format, setFormat] = useState("json");
  const sample = useMutation({
    mutationFn: () => api.post<Sample>(`${connectionPath(connection)}/sample`, { options: { [option]: topic, ...(format && { format }) } }),
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    sample.mutate();
  }
  return (
    <form onSubmit={submit} aria-label={`Sample of ${topic}`}>
      <Group gap="xs" align="flex-end">
        <TextInput size="xs" label="Format" value={format} onChange={(event) => setFormat(event.currentTarget.value)} />
        <Button size="xs" type="submit" loading={sample.isPending}>Read a sample</Button>
        <span className="quiet">Up to 20 messages; none is consumed.</span>
      </Group>
      {sample.isError && <ErrorNotice error={sample.error} />}
      {sample.data && <Found sample={sample.data} topic={topic} />}
    </form>
  );
}

function Found({ sample, topic }: { sample: Sample; topic: string }) {
  const { messages, columns, errors } = sample;
  if (!messages.length) return <Empty title="There are no messages to look at" />;
  return (
    <Stack gap="xs" mt="xs">
      {errors.map((each) => <Notice key={each.message} tone="bad" title={each.message} role="alert">{each.hint}</Notice>)}
      {columns.length > 0 && (
        <pre className="mono" tabIndex={0} aria-label={`Columns of ${topic}`} style={{ margin: 0, whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
          schema: {columns.map((each) => `${each.name} ${each.type}`).join(", ")}{sample.more_columns && ", …"}
        </pre>
      )}
      <RowTable
        label={`Messages of ${topic}`}
        columns={[{ name: "message", type: "VARIANT" }, { name: "bytes", type: "INT" }]}
        rows={messages.map((each) => [each.cut ? `${each.text}…` : each.text, each.bytes === null ? null : String(each.bytes)])}
      />
    </Stack>
  );
}

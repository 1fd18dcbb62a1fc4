import { Button, Checkbox, Group, Stack, TextInput } from "@mantine/core";
import { useClipboard, useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, query } from "../api/client";
import type { Column } from "../api/types";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { type Connection, connectionPath } from "./connections";

interface Page { tables: string[]; more: boolean }
interface Described {
  tables: { name: string; columns: Column[] | null; primary_key: string[]; changes: boolean }[];
  text: string;
}

/** The tables of a connection, and the sources that read the chosen ones. */
export function TablesPanel({ connection }: { connection: Connection }) {
  const path = `${connectionPath(connection.name)}/tables`;
  const [text, setText] = useState("");
  const [wanted] = useDebouncedValue(text, 300);
  const [chosen, setChosen] = useState<string[]>([]);
  const tables = useInfiniteQuery({
    queryKey: ["tables", connection.name, wanted],
    queryFn: ({ pageParam, signal }) => api.get<Page>(`${path}${query({ text: wanted, after: pageParam })}`, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page.more ? page.tables[page.tables.length - 1] : undefined),
    retry: false,
  });
  const describe = useMutation({ mutationFn: () => api.post<Described>(path, { tables: chosen }) });
  if (tables.isError) return <ErrorNotice error={tables.error} onRetry={() => tables.refetch()} />;
  const names = tables.data?.pages.flatMap((page) => page.tables);
  return (
    <Stack gap="sm">
      <TextInput label="Search" value={text} onChange={(event) => setText(event.currentTarget.value)} maw={360} />
      {!names && <Loading />}
      {names?.length === 0 && <Empty title="No tables" />}
      <Checkbox.Group label="Tables" value={chosen} onChange={setChosen}>
        <Stack gap={6} mt={6}>
          {names?.map((name) => <Checkbox key={name} size="xs" value={name} label={<span className="mono">{name}</span>} />)}
        </Stack>
      </Checkbox.Group>
      <Group gap="xs">
        <Button size="xs" disabled={!chosen.length} loading={describe.isPending} onClick={() => describe.mutate()}>Show as sources</Button>
        {tables.hasNextPage && <Button size="xs" variant="default" loading={tables.isFetchingNextPage} onClick={() => tables.fetchNextPage()}>More tables</Button>}
      </Group>
      {describe.isError && <ErrorNotice error={describe.error} />}
      {describe.data && <Sources found={describe.data} />}
    </Stack>
  );
}

function Sources({ found }: { found: Described }) {
  const clipboard = useClipboard();
  return (
    <Stack gap="xs">
      {found.tables.map((table) => (
        <div key={table.name}>
          <strong className="mono">{table.name}</strong>{" "}
          <span className="quiet">
            {table.columns?.map((each) => `${each.name} ${each.type}${table.primary_key.includes(each.name) ? " (key)" : ""}`).join(", ") ?? "cannot be read"}
            {table.changes && " · its changes can be read"}
          </span>
        </div>
      ))}
      <pre className="mono" tabIndex={0} aria-label="Sources of the tables" style={{ margin: 0, overflowX: "auto" }}>{found.text}</pre>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={() => clipboard.copy(found.text)}>{clipboard.copied ? "Copied" : "Copy"}</Button>
        <Button size="xs" component="a" href={`/new#text=${encodeURIComponent(`${found.text}sinks:\n  out: {type: print, from: ${nodeOf(found.text)}}\n`)}`}>New pipeline</Button>
      </Group>
    </Stack>
  );
}

/** Returns the first source of a text. */
function nodeOf(text: string): string {
  return /^ {2}(\w+):/m.exec(text)?.[1] ?? "source";
}

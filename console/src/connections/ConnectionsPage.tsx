import { Button, Group, Stack, Table } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { useLive } from "../live/LiveProvider";
import { AskButton } from "../parts/AskButton";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Time } from "../parts/Time";
import classes from "../parts/CardTable.module.css";
import { usePageTitle } from "../parts/usePageTitle";
import { ConnectionForm, TestResult } from "./ConnectionForm";
import { AccessPanel } from "./AccessPanel";
import { type Connection, connectionPath, listTitle, type Tested, useConnections, useDelete } from "./connections";
import { NamesPanel } from "./NamesPanel";
import { TablesPanel } from "./TablesPanel";

type Open = { kind: "new" } | { kind: "edit" | "list"; name: string } | null;

/** The connections of the server, which pipelines use by name. */
export default function ConnectionsPage() {
  usePageTitle("Connections");
  const connections = useConnections();
  const [open, setOpen] = useState<Open>(null);
  const remove = useDelete();
  if (connections.isError) return <ErrorNotice error={connections.error} onRetry={() => connections.refetch()} />;
  const close = () => setOpen(null);
  const create = <Button onClick={() => setOpen({ kind: "new" })}>New connection</Button>;
  const chosen = connections.data?.find((each) => open && "name" in open && each.name === open.name);
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <h1 style={{ margin: 0 }}>Connections</h1>
        {connections.data?.length !== 0 && create}
      </Group>
      {open?.kind === "new" && <ConnectionForm onDone={close} />}
      {open?.kind === "edit" && chosen && <ConnectionForm key={chosen.name} connection={chosen} onDone={close} />}
      {open?.kind === "list" && chosen && <NamesOf key={chosen.name} connection={chosen} onClose={close} />}
      {remove.isError && <ErrorNotice error={remove.error} />}
      <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="Connections">
        {!connections.data && <Loading />}
        {connections.data?.length === 0 && (
          <Empty title="No connections yet" actions={open ? undefined : create}>
            A connection has the address and the secrets of a system once. Pipelines name it: <code className="mono">connection: NAME</code>.
          </Empty>
        )}
        {connections.data && connections.data.length > 0 && (
          <Table className={classes.table} verticalSpacing="sm" horizontalSpacing="md" miw={{ base: 0, md: 860 }}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Name</Table.Th>
                <Table.Th>Connector</Table.Th>
                <Table.Th visibleFrom="md">May use it</Table.Th>
                <Table.Th visibleFrom="md">Changed</Table.Th>
                <Table.Th>Actions</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {connections.data.map((each) => (
                <Row key={each.name} connection={each} onOpen={setOpen} onDelete={() => remove.mutate(each.name)} />
              ))}
            </Table.Tbody>
          </Table>
        )}
      </div>
    </Stack>
  );
}

/** The tables of a connection, or other names that exist in its system. */
function NamesOf({ connection, onClose }: { connection: Connection; onClose: () => void }) {
  const title = `${listTitle(connection)} of ${connection.name}`;
  return (
    <section className="surface" style={{ padding: 16 }} aria-label={title}>
      <Group justify="space-between" mb="sm" wrap="nowrap" align="flex-start">
        <h2 className="long" style={{ margin: 0, fontSize: 16 }}>{title}</h2>
        <Button size="xs" variant="subtle" onClick={onClose}>Close</Button>
      </Group>
      {connection.lists[0] === "table" ? <TablesPanel connection={connection} /> : <NamesPanel connection={connection} />}
    </section>
  );
}

function Row({ connection, onOpen, onDelete }: { connection: Connection; onOpen: (open: Open) => void; onDelete: () => void }) {
  const { name } = connection;
  const list = listTitle(connection);
  const [open, setOpen] = useState(false);
  const test = useMutation({ mutationFn: () => api.post<Tested>(`${connectionPath(name)}/test`) });
  return (
    <Table.Tr>
      <Table.Td fw={600} miw={{ md: 180 }} maw={260} style={{ overflowWrap: "anywhere" }}>{name}</Table.Td>
      <Table.Td className="mono">{connection.type}</Table.Td>
      <Table.Td visibleFrom="md"><Use connection={connection} /></Table.Td>
      <Table.Td visibleFrom="md"><Time at={connection.time} /> <span className="quiet">by {connection.author}</span></Table.Td>
      <Table.Td data-actions>
        <Group gap="xs">
          <Button size="xs" variant="default" onClick={() => onOpen({ kind: "edit", name })}>Edit</Button>
          {list && <Button size="xs" variant="default" onClick={() => onOpen({ kind: "list", name })}>{list}</Button>}
          <Button size="xs" variant="default" loading={test.isPending} onClick={() => { test.mutate(); setOpen(true); }}>Test</Button>
          <AskButton size="xs" question={`Delete ${name}?`} answer="Delete" onConfirm={onDelete}>Delete</AskButton>
        </Group>
        {test.isError && <ErrorNotice error={test.error} />}
        {test.data && <TestResult result={test.data} />}
        {open && <AccessPanel connection={connection} onClose={() => setOpen(false)} />}
      </Table.Td>
    </Table.Tr>
  );
}

function Use({ connection }: { connection: Connection }) {
  const { pipelines } = useLive();
  const { users, pipelines: ids, right } = connection.permissions;
  const names = ids?.map((id) => pipelines?.get(id)?.name ?? id).join(", ");
  return <>{users ? users.join(", ") : `users with ${right}`}{names !== undefined && <span className="quiet"> in {names || "no pipeline"}</span>}</>;
}

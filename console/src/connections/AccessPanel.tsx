import { Button, Group, Table, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import { ErrorNotice } from "../parts/ErrorNotice";
import { type Connection, connectionPath, type Step } from "./connections";

const COLORS = { ok: "var(--good)", failed: "var(--bad)", "not-tried": undefined };

/** The access of a connection in steps, with the remedy of each that failed. */
export function AccessPanel({ connection, onClose }: { connection: Connection; onClose: () => void }) {
  const { name, lists } = connection;
  const option = lists[0];
  const [value, setValue] = useState("");
  const access = useMutation({
    mutationFn: () => api.post<{ steps: Step[] }>(`${connectionPath(name)}/access`, { options: option && value ? { [option]: value } : {} }),
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    access.mutate();
  }
  return (
    <form onSubmit={submit} aria-label={`Access of ${name}`}>
      <Group gap="xs" mt="xs" align="flex-end">
        {option && <TextInput size="xs" label={`Name of the ${option}`} value={value} onChange={(event) => setValue(event.currentTarget.value)} />}
        <Button size="xs" type="submit" loading={access.isPending}>Check access</Button>
        <Button size="xs" variant="subtle" onClick={onClose}>Close access</Button>
      </Group>
      {access.isError && <ErrorNotice error={access.error} />}
      {access.data && (
        <Table mt="xs" aria-label={`Steps of ${name}`}>
          <Table.Thead>
            <Table.Tr>{["Step", "State", "Remedy"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {access.data.steps.map((each) => (
              <Table.Tr key={each.step}>
                <Table.Td>{each.step}</Table.Td>
                <Table.Td fw={600} style={{ color: COLORS[each.state], whiteSpace: "nowrap" }}>{each.state.replace("-", " ")}</Table.Td>
                <Table.Td style={{ overflowWrap: "anywhere" }}>
                  {each.errors.map((error) => <div key={error.message}>{error.message}{error.hint && <div className="quiet">{error.hint}</div>}</div>)}
                  {each.reason && <span className="quiet">{each.reason}</span>}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </form>
  );
}

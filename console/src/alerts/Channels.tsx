import { Button, Group, NativeSelect, NumberInput, PasswordInput, Stack, Table, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import { AskButton } from "../parts/AskButton";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Notice } from "../parts/Notice";
import { useMay } from "../session/SessionProvider";
import type { Channel } from "./alerts";

const path = (name: string) => `/alerts/channels/${encodeURIComponent(name)}`;

/** The channels that messages about alerts are sent to. */
export function Channels() {
  const admin = useMay("admin");
  const cache = useQueryClient();
  const channels = useQuery({ queryKey: ["channels"], queryFn: () => api.get<Channel[]>("/alerts/channels") });
  const test = useMutation({ mutationFn: (name: string) => api.post<void>(`${path(name)}/test`) });
  const remove = useMutation({ mutationFn: (name: string) => api.delete(path(name)), onSuccess: () => cache.invalidateQueries({ queryKey: ["channels"] }) });
  if (channels.isError) return <ErrorNotice error={channels.error} onRetry={() => channels.refetch()} />;
  return (
    <section aria-label="Channels">
      <h2 style={{ fontSize: 16 }}>Channels</h2>
      <Stack gap="sm">
        {channels.data && channels.data.length > 0 && (
          <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="List of channels">
            <Table verticalSpacing="xs" horizontalSpacing="md" miw={560}>
              <Table.Thead>
                <Table.Tr>{["Name", "Kind", "Recipient", "Secret", "Actions"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {channels.data.map((each) => (
                  <Table.Tr key={each.name}>
                    <Table.Td fw={600}>{each.name}</Table.Td>
                    <Table.Td>{each.kind}</Table.Td>
                    <Table.Td style={{ overflowWrap: "anywhere" }}>{String(each.options.url ?? (each.options.to as string[]).join(", "))}</Table.Td>
                    <Table.Td>{each.secret.set ? "set" : "not set"}</Table.Td>
                    <Table.Td>
                      {admin && (
                        <Group gap="xs" wrap="nowrap">
                          <Button size="xs" variant="default" loading={test.isPending && test.variables === each.name} onClick={() => test.mutate(each.name)}>Test</Button>
                          <AskButton size="xs" question={`Delete ${each.name}?`} answer="Delete" onConfirm={() => remove.mutate(each.name)}>Delete</AskButton>
                        </Group>
                      )}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </div>
        )}
        {test.isSuccess && <Notice tone="good" title="The message was sent" role="status" />}
        {(test.isError || remove.isError) && <ErrorNotice error={test.error ?? remove.error} />}
        {admin && <NewChannel />}
      </Stack>
    </section>
  );
}

function NewChannel() {
  const cache = useQueryClient();
  const [name, setName] = useState("");
  const [kind, setKind] = useState("webhook");
  const [values, setValues] = useState<Record<string, string | number>>({});
  const [secret, setSecret] = useState("");
  const create = useMutation({
    mutationFn: () => api.put(path(name), { options: { kind, ...optionsOf(kind, values) }, secret: secret || null }),
    onSuccess: () => {
      setName("");
      setSecret("");
      return cache.invalidateQueries({ queryKey: ["channels"] });
    },
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }
  const field = (key: string, label: string, required = true) => (
    <TextInput label={label} required={required} value={String(values[key] ?? "")} onChange={(event) => setValues({ ...values, [key]: event.currentTarget.value })} />
  );
  return (
    <form className="surface" onSubmit={submit} style={{ padding: 16 }} aria-label="New channel">
      <Stack gap="sm" maw={560}>
        <h3 style={{ margin: 0, fontSize: 14 }}>New channel</h3>
        <TextInput label="Name of the channel" required maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <NativeSelect label="Kind" value={kind} data={["webhook", "email"]} onChange={(event) => { setKind(event.currentTarget.value); setValues({}); }} />
        {kind === "webhook" ? field("url", "URL") : (
          <>
            {field("host", "Mail server")}
            <NumberInput label="Port" min={1} max={65535} value={values.port ?? 587} onChange={(port) => setValues({ ...values, port })} />
            <NativeSelect label="Encryption" value={String(values.tls ?? "starttls")} data={["starttls", "tls", "none"]} onChange={(event) => setValues({ ...values, tls: event.currentTarget.value })} />
            {field("username", "User", false)}
            {field("sender", "Sender")}
            {field("to", "Recipients, separated by commas")}
          </>
        )}
        <PasswordInput label={kind === "webhook" ? "Secret of the signature" : "Password"} autoComplete="new-password" value={secret} onChange={(event) => setSecret(event.currentTarget.value)} />
        <div><Button type="submit" loading={create.isPending} disabled={!name}>Create channel</Button></div>
        {create.isError && <ErrorNotice error={create.error} />}
      </Stack>
    </form>
  );
}

function optionsOf(kind: string, values: Record<string, string | number>): Record<string, unknown> {
  if (kind === "webhook") return { url: values.url };
  const to = String(values.to ?? "").split(",").map((each) => each.trim()).filter(Boolean);
  return { ...values, username: values.username || null, to };
}

import { Button, NativeSelect, Stack, Table, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import type { Right, Token } from "../api/types";
import { AskButton } from "../parts/AskButton";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Time } from "../parts/Time";
import { usePageTitle } from "../parts/usePageTitle";
import { useMe } from "../session/SessionProvider";
import { Once } from "./Once";
import { RightsField } from "./RightsField";

/** The tokens of the user, with which programs call the API. */
export default function TokensPage() {
  usePageTitle("Tokens");
  const cache = useQueryClient();
  const tokens = useQuery({ queryKey: ["tokens"], queryFn: () => api.get<Token[]>("/me/tokens") });
  const remove = useMutation({
    mutationFn: (id: string) => api.delete(`/me/tokens/${id}`),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["tokens"] }),
  });
  if (tokens.isError) return <ErrorNotice error={tokens.error} onRetry={() => tokens.refetch()} />;
  return (
    <Stack gap="md">
      <h1>Tokens</h1>
      <div className="surface" style={{ overflowX: "auto" }}>
        {!tokens.data && <Loading />}
        {tokens.data?.length === 0 && <Empty title="No tokens yet">Programs call the API with a token in the header Authorization.</Empty>}
        {tokens.data && tokens.data.length > 0 && (
          <Table verticalSpacing="sm" horizontalSpacing="md" miw={560}>
            <Table.Thead>
              <Table.Tr>{["Name", "Rights", "Created", "Expires", "Actions"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {tokens.data.map((token) => (
                <Table.Tr key={token.id}>
                  <Table.Td fw={600}>{token.name}</Table.Td>
                  <Table.Td>{token.rights.join(", ")}</Table.Td>
                  <Table.Td><Time at={token.time} /></Table.Td>
                  <Table.Td><Time at={token.expires} none="never" /></Table.Td>
                  <Table.Td><AskButton size="xs" question={`Remove ${token.name}?`} answer="Remove" onConfirm={() => remove.mutate(token.id)}>Remove</AskButton></Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </div>
      <NewToken />
    </Stack>
  );
}

function NewToken() {
  const me = useMe();
  const cache = useQueryClient();
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [rights, setRights] = useState<Right[]>(["view"]);
  const create = useMutation({
    mutationFn: () => api.post<{ token: string }>("/me/tokens", { name, rights, days: days ? Number(days) : null }),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["tokens"] }),
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }
  return (
    <form className="surface" onSubmit={submit} style={{ padding: 16 }}>
      <Stack gap="sm" maw={560}>
        <h2 style={{ margin: 0, fontSize: 16 }}>New token</h2>
        <TextInput label="Name" required maxLength={64} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <RightsField label="Rights" of={me.rights} value={rights} onChange={setRights} />
        <NativeSelect label="Lifetime" value={days} onChange={(event) => setDays(event.currentTarget.value)} data={[{ value: "7", label: "7 days" }, { value: "90", label: "90 days" }, { value: "365", label: "1 year" }, { value: "", label: "no end" }]} />
        <div><Button type="submit" loading={create.isPending} disabled={!name}>Create</Button></div>
        {create.isError && <ErrorNotice error={create.error} />}
        {create.data && <Once title="The token, which is shown only now" text={create.data.token} />}
      </Stack>
    </form>
  );
}

import { Button, Group, MultiSelect, NativeSelect, NumberInput, Stack, Table, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api } from "../api/client";
import { useLive } from "../live/LiveProvider";
import { AskButton } from "../parts/AskButton";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Time } from "../parts/Time";
import { useMay } from "../session/SessionProvider";
import { type Channel, conditionOf, KINDS, type Rule, type RuleKind } from "./alerts";

/** The rules of alerts. */
export function Rules() {
  const mayEdit = useMay("edit");
  const mayOperate = useMay("operate");
  const cache = useQueryClient();
  const { pipelines } = useLive();
  const [changed, setChanged] = useState<Rule | null>(null);
  const rules = useQuery({ queryKey: ["rules"], queryFn: () => api.get<Rule[]>("/alerts/rules") });
  const refresh = { onSuccess: () => cache.invalidateQueries({ queryKey: ["rules"] }) };
  const remove = useMutation({ mutationFn: (name: string) => api.delete(`/alerts/rules/${encodeURIComponent(name)}`), ...refresh });
  const silence = useMutation({
    mutationFn: ({ name, hours }: { name: string; hours: number }) =>
      api.post(`/alerts/rules/${encodeURIComponent(name)}/silence`, { until: hours ? inHours(hours) : null }),
    ...refresh,
  });
  if (rules.isError) return <ErrorNotice error={rules.error} onRetry={() => rules.refetch()} />;
  return (
    <section aria-label="Rules">
      <h2 style={{ fontSize: 16 }}>Rules</h2>
      <Stack gap="sm">
        {rules.data && rules.data.length > 0 && (
          <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="List of rules">
            <Table verticalSpacing="xs" horizontalSpacing="md" miw={640}>
              <Table.Thead>
                <Table.Tr>{["Name", "Condition", "Pipelines", "Channels", "Actions"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {rules.data.map((rule) => {
                  const silent = rule.silenced_until !== null && rule.silenced_until > new Date().toISOString();
                  return (
                    <Table.Tr key={rule.name}>
                      <Table.Td fw={600}>{rule.name}</Table.Td>
                      <Table.Td>{conditionOf(rule)}{silent && <div className="quiet">silent until <Time at={rule.silenced_until} /></div>}</Table.Td>
                      <Table.Td>{rule.pipelines ? rule.pipelines.map((id) => pipelines?.get(id)?.name ?? id).join(", ") : "all"}</Table.Td>
                      <Table.Td>{rule.channels.join(", ") || "–"}</Table.Td>
                      <Table.Td>
                        <Group gap="xs" wrap="nowrap">
                          {mayOperate && <Button size="xs" variant="default" onClick={() => silence.mutate({ name: rule.name, hours: silent ? 0 : 4 })}>{silent ? "End silence" : "Silence 4 h"}</Button>}
                          {mayEdit && <Button size="xs" variant="default" onClick={() => setChanged(rule)}>Change</Button>}
                          {mayEdit && <AskButton size="xs" question={`Delete ${rule.name}?`} answer="Delete" onConfirm={() => remove.mutate(rule.name)}>Delete</AskButton>}
                        </Group>
                      </Table.Td>
                    </Table.Tr>
                  );
                })}
              </Table.Tbody>
            </Table>
          </div>
        )}
        {(remove.isError || silence.isError) && <ErrorNotice error={remove.error ?? silence.error} />}
        {mayEdit && <RuleForm key={changed?.name ?? ""} rule={changed} onEnd={() => setChanged(null)} />}
      </Stack>
    </section>
  );
}

/** The form of a new rule, or of a `rule` that is changed. */
function RuleForm({ rule, onEnd }: { rule: Rule | null; onEnd: () => void }) {
  const cache = useQueryClient();
  const { pipelines } = useLive();
  const channels = useQuery({ queryKey: ["channels"], queryFn: () => api.get<Channel[]>("/alerts/channels") });
  const [name, setName] = useState(rule?.name ?? "");
  const [kind, setKind] = useState<RuleKind>(rule?.kind ?? "failed");
  const [threshold, setThreshold] = useState<number | string>(rule?.threshold ?? 1000);
  const [minutes, setMinutes] = useState<number | string>(rule?.minutes ?? 5);
  const [ids, setIds] = useState<string[]>(rule?.pipelines ?? []);
  const [to, setTo] = useState<string[]>(rule?.channels ?? []);
  const create = useMutation({
    mutationFn: () =>
      api.put(`/alerts/rules/${encodeURIComponent(name)}`, {
        kind, threshold: Number(threshold), minutes: Number(minutes), pipelines: ids.length ? ids : null, channels: to, enabled: rule?.enabled ?? true,
      }),
    onSuccess: () => {
      setName("");
      onEnd();
      return cache.invalidateQueries({ queryKey: ["rules"] });
    },
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    create.mutate();
  }
  const title = rule ? `Change ${rule.name}` : "New rule";
  return (
    <form className="surface" onSubmit={submit} style={{ padding: 16 }} aria-label={title}>
      <Stack gap="sm" maw={560}>
        <h3 style={{ margin: 0, fontSize: 14 }}>{title}</h3>
        <TextInput label="Name of the rule" required maxLength={64} readOnly={rule !== null} autoFocus={rule !== null} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <NativeSelect label="Condition" value={kind} data={Object.entries(KINDS).map(([value, { label }]) => ({ value, label }))} onChange={(event) => setKind(event.currentTarget.value as RuleKind)} />
        {KINDS[kind].threshold && <NumberInput label={`Threshold (${KINDS[kind].threshold})`} min={0} value={threshold} onChange={setThreshold} />}
        {KINDS[kind].minutes && <NumberInput label="Minutes" min={0} value={minutes} onChange={setMinutes} />}
        <MultiSelect label="Pipelines of the rule" placeholder={ids.length ? undefined : "all pipelines"} searchable value={ids} onChange={setIds} data={[...(pipelines?.values() ?? [])].map((each) => ({ value: each.id, label: each.name }))} />
        <MultiSelect label="Channels of the rule" placeholder={to.length ? undefined : "none: the alert is only shown here"} value={to} onChange={setTo} data={channels.data?.map((each) => each.name) ?? []} />
        <Group gap="xs">
          <Button type="submit" loading={create.isPending} disabled={!name}>{rule ? "Save rule" : "Create rule"}</Button>
          {rule && <Button variant="default" onClick={onEnd}>Cancel</Button>}
        </Group>
        {create.isError && <ErrorNotice error={create.error} />}
      </Stack>
    </form>
  );
}

function inHours(hours: number): string {
  return new Date(Date.now() + hours * 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
}

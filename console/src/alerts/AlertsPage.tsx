import { Button, Stack, Table } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, query } from "../api/client";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Time } from "../parts/Time";
import { usePageTitle } from "../parts/usePageTitle";
import { useMay } from "../session/SessionProvider";
import type { Alert } from "./alerts";
import { Channels } from "./Channels";
import { Rules } from "./Rules";

const LIMIT = 50;

/** Alerts, open ones first, with the rules that open them and the channels of their messages. */
export default function AlertsPage() {
  usePageTitle("Alerts");
  const mayEdit = useMay("edit");
  return (
    <Stack gap="lg">
      <h1 style={{ margin: 0 }}>Alerts</h1>
      <History />
      <Rules />
      {mayEdit && <Channels />}
    </Stack>
  );
}

function History() {
  const alerts = useInfiniteQuery({
    queryKey: ["alerts"],
    queryFn: ({ pageParam }) => api.get<Alert[]>(`/alerts${query({ limit: LIMIT, before: pageParam })}`),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => (page.length < LIMIT ? undefined : page[page.length - 1]!.number),
    refetchInterval: 5000,
  });
  if (alerts.isError && !alerts.data) return <ErrorNotice error={alerts.error} onRetry={() => alerts.refetch()} />;
  const all = alerts.data?.pages.flat();
  const sorted = all && [...all.filter((each) => !each.resolved), ...all.filter((each) => each.resolved)];
  return (
    <div>
      <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="History">
        {!sorted && <Loading />}
        {sorted?.length === 0 && <Empty title="No alerts">A rule opens an alert when its condition holds, and resolves it when the condition ends.</Empty>}
        {sorted && sorted.length > 0 && (
          <Table verticalSpacing="xs" horizontalSpacing="md" miw={720}>
            <Table.Thead>
              <Table.Tr>{["State", "Pipeline", "Rule", "Message", "Opened", "Resolved", "Messages"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}</Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {sorted.map((alert) => (
                <Table.Tr key={alert.number}>
                  <Table.Td fw={600} style={{ color: alert.resolved ? "var(--good)" : "var(--bad)" }}>{alert.resolved ? "resolved" : "open"}</Table.Td>
                  <Table.Td><Link href={`/pipelines/${alert.pipeline}`}>{alert.name}</Link></Table.Td>
                  <Table.Td>{alert.rule}</Table.Td>
                  <Table.Td style={{ overflowWrap: "anywhere", minWidth: 200 }}>{alert.message}</Table.Td>
                  <Table.Td><Time at={alert.opened} /></Table.Td>
                  <Table.Td><Time at={alert.resolved} /></Table.Td>
                  <Table.Td><Delivery alert={alert} /></Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </div>
      {alerts.hasNextPage && <Button mt="md" variant="default" loading={alerts.isFetchingNextPage} onClick={() => alerts.fetchNextPage()}>Older alerts</Button>}
    </div>
  );
}

function Delivery({ alert }: { alert: Alert }) {
  if (!alert.messages.length) return <span className="quiet">none</span>;
  return (
    <>
      {alert.messages.map((each) => (
        <div key={each.number} title={each.error ?? undefined}>
          {each.channel}, {each.event}: {each.sent ? "sent" : each.due ? `attempt ${each.attempts + 1}` : <span style={{ color: "var(--bad)" }}>not sent</span>}
        </div>
      ))}
    </>
  );
}

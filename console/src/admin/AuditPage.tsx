import { Box, Button, Table } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, query } from "../api/client";
import type { AuditEntry } from "../api/types";
import { useLive } from "../live/LiveProvider";
import { Empty } from "../parts/Empty";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { Time } from "../parts/Time";
import { usePageTitle } from "../parts/usePageTitle";

const LIMIT = 100;

/** The audit: each change and each view of rows, last first. */
export default function AuditPage() {
  usePageTitle("Audit");
  const { pipelines } = useLive();
  const audit = useInfiniteQuery({
    queryKey: ["audit"],
    queryFn: ({ pageParam }) => api.get<AuditEntry[]>(`/audit${query({ limit: LIMIT, before: pageParam })}`),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => (page.length < LIMIT ? undefined : page[page.length - 1]!.number),
  });
  if (audit.isError && !audit.data) return <ErrorNotice error={audit.error} onRetry={() => audit.refetch()} />;
  const entries = audit.data?.pages.flat();
  return (
    <>
      <h1>Audit</h1>
      <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="Entries">
        {!entries && <Loading />}
        {entries?.length === 0 && <Empty title="No entries yet" />}
        {entries && entries.length > 0 && (
          <Table verticalSpacing="xs" horizontalSpacing="md">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Time</Table.Th>
                <Table.Th visibleFrom="sm">User</Table.Th>
                <Table.Th>Action</Table.Th>
                <Table.Th>Subject</Table.Th>
                <Table.Th visibleFrom="sm">Facts</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {entries.map((entry) => {
                const pipeline = pipelines?.get(entry.subject);
                return (
                  <Table.Tr key={entry.number}>
                    <Table.Td>
                      <Time at={entry.time} />
                      <Box className="quiet" hiddenFrom="sm">{entry.user}</Box>
                    </Table.Td>
                    <Table.Td visibleFrom="sm">{entry.user}</Table.Td>
                    <Table.Td>{entry.action}</Table.Td>
                    <Table.Td className="long">
                      {pipeline ? <Link href={`/pipelines/${pipeline.id}`}>{pipeline.name}</Link> : entry.subject || "–"}
                      <Box className="quiet" hiddenFrom="sm">{facts(entry.facts)}</Box>
                    </Table.Td>
                    <Table.Td className="quiet long" visibleFrom="sm">{facts(entry.facts)}</Table.Td>
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        )}
      </div>
      {audit.hasNextPage && (
        <Button mt="md" variant="default" loading={audit.isFetchingNextPage} onClick={() => audit.fetchNextPage()}>
          Older entries
        </Button>
      )}
    </>
  );
}

function facts(all: Record<string, unknown>): string {
  const set = Object.entries(all).filter(([, value]) => value !== null && value !== false);
  return set.map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`).join(" · ");
}

import { Button, Table } from "@mantine/core";
import { useRuns } from "../../api/queries";
import { Empty } from "../../parts/Empty";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { Loading } from "../../parts/Loading";
import { RunRow } from "./RunRow";

/** The runs of a pipeline, last first, with their errors. */
export default function RunsTab({ id }: { id: string }) {
  const runs = useRuns(id);
  if (runs.isError && !runs.data) return <ErrorNotice error={runs.error} onRetry={() => runs.refetch()} />;
  if (!runs.data) return <Loading />;
  return (
    <>
      <div className="surface" style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label="Runs">
        {runs.data.length ? (
          <Table verticalSpacing="xs" horizontalSpacing="md" miw={640}>
            <Table.Thead>
              <Table.Tr>
                {["Ending", "Began", "Lasted", "Errors", "Version", "Author", "Log"].map((each) => <Table.Th key={each}>{each}</Table.Th>)}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {runs.data.map((run) => <RunRow key={run.id} id={id} run={run} />)}
            </Table.Tbody>
          </Table>
        ) : (
          <Empty title="The pipeline has never run">A start creates its first run.</Empty>
        )}
      </div>
      {runs.hasNextPage && (
        <Button size="xs" mt="sm" variant="default" loading={runs.isFetchingNextPage} onClick={() => runs.fetchNextPage()}>Earlier runs</Button>
      )}
    </>
  );
}

import { Button, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, query } from "../../api/client";
import { pipelinePath, useRuns } from "../../api/queries";
import type { LogLine } from "../../api/types";
import { plural } from "../../format/numbers";
import { absolute } from "../../format/times";
import { Empty } from "../../parts/Empty";
import { ErrorNotice } from "../../parts/ErrorNotice";
import { SearchIcon } from "../../parts/icons";
import { useSearchFilters } from "../../parts/useSearchFilters";
import { Loading } from "../../parts/Loading";
import { LogLines } from "./LogLines";
import classes from "./Logs.module.css";

const LIMIT = 500;

/** The last lines of the log, of a level, a run and a text. The filter is in the address. */
export default function LogsTab({ id }: { id: string }) {
  const { search, set: setFilter } = useSearchFilters();
  const [frozen, setFrozen] = useState(false);
  const runs = useRuns(id);
  const filter = { level: search.get("level") ?? "info", run: search.get("run"), text: search.get("text") };
  const [settled] = useDebouncedValue(filter.text, 250);
  const path = `${pipelinePath(id)}/logs${query({ ...filter, text: settled, limit: LIMIT })}`;
  const lines = useQuery({
    queryKey: ["logs", id, path],
    queryFn: ({ signal }) => api.get<LogLine[]>(path, signal),
    refetchInterval: frozen ? false : 3000,
    enabled: !frozen,
    placeholderData: keepPreviousData,
  });

  function set(name: string, value: string | null): void {
    setFrozen(false);
    setFilter(name, value);
  }

  return (
    <section className="surface" aria-label="Log">
      <div className={classes.tools}>
        <Select aria-label="Level" size="xs" w={120} allowDeselect={false} value={filter.level} onChange={(value) => set("level", value)} data={[{ value: "debug", label: "Debug" }, { value: "info", label: "Info" }, { value: "warning", label: "Warnings" }, { value: "error", label: "Errors" }]} />
        <Select aria-label="Run" size="xs" className={classes.run} placeholder="All runs" clearable value={filter.run} onChange={(value) => set("run", value)} data={(runs.data ?? []).map((each) => ({ value: each.id, label: `${absolute(each.began)} · ${each.ending ?? "running"}` }))} />
        <TextInput aria-label="Text" size="xs" type="search" className={classes.search} placeholder="Text" leftSection={<SearchIcon />} value={filter.text ?? ""} onChange={(event) => set("text", event.currentTarget.value)} />
        <span className={classes.count}>{lines.data && (lines.data.length === LIMIT ? `last ${LIMIT} lines` : plural(lines.data.length, "line"))}</span>
        <Button size="xs" variant="default" onClick={() => setFrozen(!frozen)} aria-pressed={frozen}>
          {frozen ? "Follow" : "Freeze"}
        </Button>
      </div>
      {lines.isError && !lines.data && <ErrorNotice error={lines.error} onRetry={() => lines.refetch()} />}
      {lines.isPending && !lines.isError && <Loading />}
      {lines.data?.length === 0 && <Empty title="No lines">No line of the log matches the filter.</Empty>}
      {lines.data && lines.data.length > 0 && <LogLines lines={lines.data} follow={!frozen} />}
    </section>
  );
}

import { Button, TextInput } from "@mantine/core";
import { useDeferredValue, useMemo } from "react";
import { Link, useLocation } from "wouter";
import { useThroughput } from "../api/metrics";
import type { State, Summary } from "../api/types";
import { useLive, usePipelines } from "../live/LiveProvider";
import { Empty } from "../parts/Empty";
import { PlusIcon, SearchIcon } from "../parts/icons";
import { Loading } from "../parts/Loading";
import { Notice } from "../parts/Notice";
import { usePageTitle } from "../parts/usePageTitle";
import { useSearchFilters } from "../parts/useSearchFilters";
import { useMay } from "../session/SessionProvider";
import { PipelineList } from "./PipelineList";
import classes from "./PipelinesPage.module.css";
import { StateFilter } from "./StateFilter";

/** All pipelines, the worst first. Search and filter are in the address. */
export function PipelinesPage() {
  usePageTitle("Pipelines");
  const pipelines = usePipelines();
  const { connected } = useLive();
  const throughput = useThroughput();
  const mayEdit = useMay("edit");
  const { search, set, clear } = useSearchFilters();
  const [text, state] = [search.get("q") ?? "", search.get("state") as State | null];
  const wanted = useDeferredValue(text.trim().toLowerCase());
  const shown = useMemo(
    () => pipelines?.filter((each) => (!state || each.health.state === state) && matches(each, wanted)),
    [pipelines, state, wanted],
  );

  return (
    <>
      <div className={classes.head}>
        <h1>Pipelines</h1>
        {mayEdit && (
          <Button component={Link} href="/new" leftSection={<PlusIcon />} variant="default">
            New pipeline
          </Button>
        )}
      </div>
      {!pipelines && !connected && <Loading lines={6} />}
      {pipelines?.length === 0 && <NoPipelines mayEdit={mayEdit} />}
      {pipelines && pipelines.length > 0 && (
        <>
          <div className={classes.tools}>
            <TextInput className={classes.search} type="search" aria-label="Search pipelines" placeholder="Name, file, or reason" leftSection={<SearchIcon />} value={text} onChange={(event) => set("q", event.currentTarget.value)} />
            <StateFilter pipelines={pipelines} state={state} onChange={(each) => set("state", each)} />
          </div>
          {shown?.length ? (
            <PipelineList pipelines={shown} throughput={throughput.data} />
          ) : (
            <div className="surface">
              <Empty title="No pipeline matches" actions={<Button variant="default" onClick={clear}>Show all</Button>} />
            </div>
          )}
        </>
      )}
    </>
  );
}

function NoPipelines({ mayEdit }: { mayEdit: boolean }) {
  const [, navigate] = useLocation();
  return (
    <div className="surface">
      <Empty title="There are no pipelines yet" actions={mayEdit && <Button onClick={() => navigate("/new")}>Create the first pipeline</Button>}>
        Files of pipelines (.yaml, .sql) in the directory of the server appear here by themselves.
      </Empty>
      {!mayEdit && <Notice tone="calm" title="You may view pipelines">The right edit permits to create pipelines.</Notice>}
    </div>
  );
}

function matches(pipeline: Summary, wanted: string): boolean {
  const { reason } = pipeline.health;
  return [pipeline.name, pipeline.file, reason?.code, reason?.message].some((each) => each?.toLowerCase().includes(wanted));
}

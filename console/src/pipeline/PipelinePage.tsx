import { lazy, Suspense } from "react";
import { ApiError } from "../api/client";
import type { Detail } from "../api/types";
import { useDetail } from "../api/queries";
import { usePipeline } from "../live/LiveProvider";
import { ErrorNotice } from "../parts/ErrorNotice";
import { Loading } from "../parts/Loading";
import { usePageTitle } from "../parts/usePageTitle";
import { useMay } from "../session/SessionProvider";
import { DeletedPipeline } from "./DeletedPipeline";
import { PipelineHeader } from "./PipelineHeader";
import { PipelineTabs } from "./PipelineTabs";

const GraphTab = lazy(() => import("./graph/GraphTab"));
const MetricsTab = lazy(() => import("./metrics/MetricsTab"));
const EditorTab = lazy(() => import("./editor/EditorTab"));
const VersionsTab = lazy(() => import("./versions/VersionsTab"));
const RunsTab = lazy(() => import("./runs/RunsTab"));
const LogsTab = lazy(() => import("./logs/LogsTab"));
const DeadLettersTab = lazy(() => import("./deadLetters/DeadLettersTab"));

/** A pipeline: its header, and the tab of the address. */
export default function PipelinePage({ id, tab }: { id: string; tab: string }) {
  const detail = useDetail(id);
  const live = usePipeline(id);
  const summary = live ?? detail.data;
  const data = useMay("data");
  usePageTitle(summary?.name ?? "Pipeline");
  if (detail.isError && !detail.data) return <ErrorNotice error={detail.error} onRetry={() => detail.refetch()} />;
  if (detail.data && isDeleted(detail.error)) return <DeletedPipeline id={id} name={detail.data.name} />;
  if (!detail.data || !summary) return <Loading lines={3} height={56} />;
  return (
    <>
      <PipelineHeader pipeline={summary} errors={detail.data.errors} />
      <PipelineTabs id={id} tab={tab} letters={summary.dead_letters} data={data} />
      <Suspense fallback={<Loading />}>
        <Tab tab={tab} detail={detail.data} />
      </Suspense>
    </>
  );
}

const isDeleted = (error: unknown): boolean => error instanceof ApiError && error.code === "unknown-pipeline";

function Tab({ tab, detail }: { tab: string; detail: Detail }) {
  switch (tab) {
    case "metrics":
      return <MetricsTab detail={detail} />;
    case "editor":
      return <EditorTab detail={detail} />;
    case "versions":
      return <VersionsTab detail={detail} />;
    case "runs":
      return <RunsTab id={detail.id} />;
    case "logs":
      return <LogsTab id={detail.id} />;
    case "dead-letters":
      return <DeadLettersTab pipeline={detail} />;
    default:
      return <GraphTab detail={detail} />;
  }
}

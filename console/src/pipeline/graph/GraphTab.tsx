import { SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useState } from "react";
import { Link, useSearchParams } from "wouter";
import type { Detail } from "../../api/types";
import { Empty } from "../../parts/Empty";
import { Loading } from "../../parts/Loading";
import { useMay } from "../../session/SessionProvider";
import classes from "./GraphTab.module.css";
import { NodePanel } from "./NodePanel";
import { NodeTable } from "./NodeTable";

const Graph = lazy(() => import("./Graph"));
const TapPanel = lazy(() => import("../tap/TapPanel"));
const LARGE = 300;

/** The nodes of a pipeline as a graph or as a list, with the facts of the selected node. */
export default function GraphTab({ detail }: { detail: Detail }) {
  const narrow = useMediaQuery("(max-width: 640px)", undefined, { getInitialValueInEffect: false });
  const [search, setSearch] = useSearchParams();
  const [selected, setSelected] = useState<string | null>(null);
  const view = search.get("view") ?? (narrow || detail.nodes.length > LARGE ? "list" : "graph");
  const mayData = useMay("data");
  const runs = detail.owner !== null;
  const tapped = search.get("tap");
  const tap = (name: string | null) => setSearch((last) => { name === null ? last.delete("tap") : last.set("tap", name); return last; }, { replace: true });
  const node = detail.nodes.find((each) => each.name === selected);
  if (!detail.nodes.length) {
    return (
      <div className="surface">
        <Empty title="The graph needs a valid file" actions={<Link href={`/pipelines/${detail.id}/editor`}>Open the editor</Link>}>
          {detail.errors[0]?.message ?? "The file of the pipeline has no nodes."}
        </Empty>
      </div>
    );
  }
  return (
    <>
      <div className={classes.tools}>
        <SegmentedControl size="xs" aria-label="View" value={view} onChange={(next) => setSearch((last) => { last.set("view", next); return last; }, { replace: true })} data={[{ value: "graph", label: "Graph" }, { value: "list", label: "List" }]} />
      </div>
      <div className={classes.split} data-open={Boolean(node)}>
        <div className={`surface ${classes.canvas}`} data-view={view}>
          {view === "graph" ? (
            <Suspense fallback={<Loading />}>
              <Graph detail={detail} selected={selected} onSelect={setSelected} />
            </Suspense>
          ) : (
            <NodeTable detail={detail} selected={selected} onSelect={setSelected} />
          )}
        </div>
        {node && <NodePanel node={node} numbers={detail.numbers?.nodes[node.name]} onTap={mayData && runs && tapped !== node.name ? () => tap(node.name) : undefined} onClose={() => setSelected(null)} />}
      </div>
      {tapped && mayData && (
        <Suspense fallback={<Loading />}>
          <TapPanel key={tapped} id={detail.id} node={tapped} runs={runs} onClose={() => tap(null)} />
        </Suspense>
      )}
    </>
  );
}

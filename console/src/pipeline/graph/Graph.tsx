import "@xyflow/react/dist/base.css";
import { Background, Controls, ReactFlow } from "@xyflow/react";
import { useMemo } from "react";
import { useMetrics } from "../../api/metrics";
import type { Detail } from "../../api/types";
import { GraphNode } from "./GraphNode";
import "./graph.css";
import { place } from "./layout";

interface Props { detail: Detail; selected: string | null; onSelect: (name: string | null) => void }

const types = { part: GraphNode };

/** The graph of a pipeline. Nodes are buttons in the order of Tab. */
export default function Graph({ detail, selected, onSelect }: Props) {
  const shape = JSON.stringify(detail.nodes.map((each) => [each.name, each.inputs]));
  const placed = useMemo(() => place(detail.nodes), [shape]);
  const metrics = useMetrics(detail.id, "15m", "rows_per_second");
  const rates = new Map(metrics.data?.series.map((each) => [each.name, each.values]));
  const failing = failingNodes(detail);
  const nodes = placed.nodes.map((each) => ({
    ...each,
    ariaLabel: each.id,
    data: {
      facts: detail.nodes.find((one) => one.name === each.id),
      numbers: detail.numbers?.nodes[each.id],
      rates: rates.get(each.id),
      failing: failing.has(each.id),
      selected: each.id === selected,
      onSelect,
    },
  }));
  return (
    <ReactFlow
      nodes={nodes} edges={placed.edges} nodeTypes={types} aria-label="Graph of the pipeline"
      fitView fitViewOptions={{ padding: 0.12, maxZoom: 1.05, minZoom: 0.55 }} minZoom={0.2} maxZoom={1.6}
      nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false}
      elementsSelectable={false} proOptions={{ hideAttribution: true }} preventScrolling={false}
      onPaneClick={() => onSelect(null)}
    >
      <Background gap={20} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
    </ReactFlow>
  );
}

/** Returns the names of nodes whose query fails or is retried, and of the node of the reason. */
function failingNodes({ health, numbers }: Detail): Set<string> {
  const executions = Object.entries(numbers?.queries ?? {});
  const failing = executions.filter(([, each]) => ["failed", "retrying"].includes(each.state)).map(([name, each]) => each.sink ?? name);
  return new Set(health.reason?.node ? [...failing, health.reason.node] : failing);
}

import "@xyflow/react/dist/base.css";
import { Background, Controls, Panel, ReactFlow, useReactFlow } from "@xyflow/react";
import { useEffect, useMemo, useState } from "react";
import { useMetrics } from "../../api/metrics";
import type { Detail } from "../../api/types";
import { ChainNode } from "./ChainNode";
import { collapse, LARGE, opening } from "./chains";
import { GraphNode } from "./GraphNode";
import "./graph.css";
import { place } from "./layout";
import { Overview } from "./Overview";

interface Props { detail: Detail; selected: string | null; onSelect: (name: string | null) => void }

const types = { part: GraphNode, chain: ChainNode };
const NO_CHAINS = new Map<string, string[]>();

/** The graph of a pipeline. Nodes are buttons in the order of Tab. A large one has its chains collapsed. */
export default function Graph({ detail, selected, onSelect }: Props) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [latest, setLatest] = useState<string[]>([]);
  const problems = problemsOf(detail);
  const large = detail.nodes.length > LARGE;
  const open = new Set([...opened, ...problems, ...(selected ? [selected] : [])]);
  const shown = large ? collapse(detail.nodes, open) : { nodes: detail.nodes, chains: NO_CHAINS };
  const shape = JSON.stringify(shown.nodes.map((each) => [each.name, each.inputs]));
  const placed = useMemo(() => place(shown.nodes), [shape]);
  const start = opening(shown.nodes, problems);
  const metrics = useMetrics(detail.id, "15m", "rows_per_second");
  const rates = new Map(metrics.data?.series.map((each) => [each.name, each.values]));
  const failing = failingNodes(detail);
  const nodes = placed.nodes.map((each) => shown.chains.has(each.id) ? chain(each) : ({
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

  function chain(node: (typeof placed.nodes)[number]) {
    const onOpen = (members: string[]) => {
      setOpened(new Set([...opened, ...members]));
      setLatest(members);
    };
    return { ...node, type: "chain", ariaLabel: node.id, data: { members: shown.chains.get(node.id), onOpen } };
  }

  return (
    <ReactFlow
      nodes={nodes} edges={placed.edges} nodeTypes={types} aria-label="Graph of the pipeline"
      fitView fitViewOptions={{ nodes: start?.map((id) => ({ id })), padding: 0.12, maxZoom: 1.05, minZoom: 0.55 }} minZoom={0.2} maxZoom={1.6}
      nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false}
      elementsSelectable={false} proOptions={{ hideAttribution: true }} preventScrolling={false}
      onPaneClick={() => onSelect(null)}
    >
      <Background gap={20} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
      {large && <Overview problems={problems} />}
      <ChainInView members={latest} />
      {opened.size > 0 && (
        <Panel position="top-right">
          <button type="button" className="collapse" onClick={() => setOpened(new Set())}>Collapse chains</button>
        </Panel>
      )}
    </ReactFlow>
  );
}

/** Moves the canvas to the first members of a chain when it is opened. */
function ChainInView({ members }: { members: string[] }) {
  const { fitView } = useReactFlow();
  useEffect(() => {
    if (members.length) void fitView({ nodes: members.slice(0, 4).map((id) => ({ id })), padding: 0.2, minZoom: 0.55, maxZoom: 1.05 });
  }, [members]);
  return null;
}

/** Returns the failing nodes, or else those with dead letters. */
function problemsOf(detail: Detail): Set<string> {
  const failing = failingNodes(detail);
  if (failing.size) return failing;
  const numbers = Object.entries(detail.numbers?.nodes ?? {});
  return new Set(numbers.filter(([, each]) => each.dead_letters > 0).map(([name]) => name));
}

/** Returns the names of nodes whose query fails or is retried, and of the node of the reason. */
function failingNodes({ health, numbers }: Detail): Set<string> {
  const executions = Object.entries(numbers?.queries ?? {});
  const failing = executions.filter(([, each]) => ["failed", "retrying"].includes(each.state)).map(([name, each]) => each.sink ?? name);
  return new Set(health.reason?.node ? [...failing, health.reason.node] : failing);
}

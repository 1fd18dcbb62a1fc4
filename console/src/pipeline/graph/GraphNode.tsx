import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import type { Values } from "../../api/metrics";
import type { NodeFacts, NodeNumbers } from "../../api/types";
import { Sparkline } from "../../charts/Sparkline";
import { count, rate } from "../../format/numbers";

export type PartNode = Node<{
  facts: NodeFacts;
  numbers?: NodeNumbers;
  rates?: Values;
  failing: boolean;
  selected: boolean;
  onSelect: (name: string) => void;
}>;

/** A node of the graph: kind, type and name, then rows, lag and dead letters. */
export function GraphNode({ data }: NodeProps<PartNode>) {
  const { facts, numbers, rates, failing, selected, onSelect } = data;
  if (!facts) return null;
  return (
    <button type="button" className="part nopan" data-kind={facts.kind} data-failing={failing || undefined} aria-pressed={selected} onClick={() => onSelect(facts.name)}>
      {facts.kind !== "source" && <Handle type="target" position={Position.Left} isConnectable={false} />}
      <span className="part-type">
        {facts.kind} · {facts.type}
      </span>
      <span className="part-trend">
        <Sparkline values={rates} width={52} height={16} />
      </span>
      <span className="part-name" title={facts.name}>
        {facts.name}
      </span>
      <span className="part-numbers">
        {numbers && facts.kind !== "transform" && <span className="number">{rate(numbers.rows_per_second)} rows/s</span>}
        {numbers?.lag != null && <span className="number">lag {count(numbers.lag)}</span>}
        {Boolean(numbers?.dead_letters) && <span className="number part-letters">{count(numbers!.dead_letters)} dead</span>}
        {failing && <span className="part-failing">failing</span>}
      </span>
      {facts.kind !== "sink" && <Handle type="source" position={Position.Right} isConnectable={false} />}
    </button>
  );
}

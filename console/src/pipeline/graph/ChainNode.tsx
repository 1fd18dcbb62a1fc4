import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";

export type ChainNodeType = Node<{ members: string[]; onOpen: (members: string[]) => void }>;

/** A chain of transforms as one node. A click shows its members. */
export function ChainNode({ data: { members, onOpen } }: NodeProps<ChainNodeType>) {
  return (
    <button type="button" className="part part-chain nopan" aria-expanded={false} onClick={() => onOpen(members)}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="part-type">{members.length} transforms</span>
      <span className="part-name" title={members.join(" → ")}>
        {members[0]} … {members.at(-1)}
      </span>
      <span className="part-numbers">show</span>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </button>
  );
}

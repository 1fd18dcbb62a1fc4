/** The positions of the nodes of a graph, from left to right, by dagre. */
import { Graph as Layout, layout } from "@dagrejs/dagre";
import type { Edge, Node } from "@xyflow/react";
import type { NodeFacts } from "../../api/types";

export const WIDTH = 208;
export const HEIGHT = 76;

export function place(facts: NodeFacts[]): { nodes: Node[]; edges: Edge[] } {
  const graph = new Layout().setGraph({ rankdir: "LR", nodesep: 24, ranksep: 64 }).setDefaultEdgeLabel(() => ({}));
  const names = new Set(facts.map((each) => each.name));
  const edges: Edge[] = [];
  facts.forEach((each) => graph.setNode(each.name, { width: WIDTH, height: HEIGHT }));
  for (const each of facts) {
    for (const input of each.inputs.filter((name) => names.has(name))) {
      graph.setEdge(input, each.name);
      edges.push({ id: `${input}→${each.name}`, source: input, target: each.name, focusable: false });
    }
  }
  layout(graph);
  const nodes = facts.map((each) => {
    const { x, y } = graph.node(each.name) as { x: number; y: number };
    return {
      id: each.name, type: "part", data: {}, width: WIDTH, height: HEIGHT,
      position: { x: x - WIDTH / 2, y: y - HEIGHT / 2 },
    };
  });
  return { nodes, edges };
}

/** Chains of a graph: transforms that follow one another, shown as one node in large graphs. */
import type { NodeFacts } from "../../api/types";

export const LARGE = 20;

export interface Shown { nodes: NodeFacts[]; chains: Map<string, string[]> }

/**
 * Returns the nodes to show, with each chain of at least two transforms as one node. The names of
 * `open` are never part of a chain.
 */
export function collapse(nodes: NodeFacts[], open: ReadonlySet<string>): Shown {
  const readers = readersOf(nodes);
  const byName = new Map(nodes.map((each) => [each.name, each]));
  const inner = (node: NodeFacts) => node.kind === "transform" && node.inputs.length === 1 && !open.has(node.name);
  const joined = new Map<string, string>();
  const chains = new Map<string, string[]>();
  for (const node of nodes) {
    const before = byName.get(node.inputs[0] ?? "");
    const continues = before && inner(node) && inner(before) && readers.get(before.name)?.length === 1;
    if (!inner(node) || continues) continue;
    const members = [node.name];
    for (let [next, ...others] = readers.get(node.name) ?? []; next && !others.length && inner(next);) {
      members.push(next.name);
      [next, ...others] = readers.get(next.name) ?? [];
    }
    if (members.length < 2) continue;
    const id = members.join(" → ");
    chains.set(id, members);
    members.forEach((name) => joined.set(name, id));
  }
  return { nodes: withChains(nodes, chains, joined), chains };
}

function withChains(nodes: NodeFacts[], chains: Map<string, string[]>, joined: Map<string, string>): NodeFacts[] {
  const shown: NodeFacts[] = [];
  for (const node of nodes) {
    const id = joined.get(node.name);
    if (id && chains.get(id)![0] !== node.name) continue;
    const inputs = node.inputs.map((name) => joined.get(name) ?? name);
    shown.push(id ? { ...node, name: id, inputs } : { ...node, inputs });
  }
  return shown;
}

function readersOf(nodes: NodeFacts[]): Map<string, NodeFacts[]> {
  const readers = new Map<string, NodeFacts[]>();
  for (const node of nodes) {
    for (const input of node.inputs) readers.set(input, [...(readers.get(input) ?? []), node]);
  }
  return readers;
}

/** Returns the nodes at which a large graph opens: the problem with its neighbours, or the sources. */
export function opening(nodes: NodeFacts[], problems: ReadonlySet<string>): string[] | undefined {
  if (nodes.length <= (problems.size ? LARGE / 2 : LARGE)) return undefined;
  const isStart = (node: NodeFacts) => (problems.size ? problems.has(node.name) : node.kind === "source");
  const starts = new Set(nodes.filter(isStart).slice(0, 4).map((each) => each.name));
  const near = nodes.filter((each) => starts.has(each.name) || each.inputs.some((name) => starts.has(name)));
  const before = nodes.filter((each) => starts.has(each.name)).flatMap((each) => each.inputs);
  return [...new Set([...near.map((each) => each.name), ...before])];
}

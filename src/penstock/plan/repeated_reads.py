"""The rule that a query reads each of its sources once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from penstock.core.errors import PlanError
from penstock.plan.model import Node, Plan


def count_source_reads(
    nodes: Mapping[str, Node], streams: Collection[str]
) -> dict[str, Counter[str]]:
    """Returns for each node how often it reads each source that is a stream, by all paths.

    `nodes` are in topological order.
    """
    counts: dict[str, Counter[str]] = {}
    for name, node in nodes.items():
        if node.kind == "source":
            counts[name] = Counter({name: 1} if name in streams else {})
            continue
        counts[name] = Counter()
        for input_ in node.inputs:
            times = node.relation.count_reads(input_) if node.relation is not None else 1
            for source, count in counts[input_].items():
                counts[name][source] += count * times
    return counts


def sources_are_read_once(plan: Plan) -> Iterator[PlanError]:
    """Checks that no query joins or combines a stream with itself."""
    counts = count_source_reads(plan.nodes, plan.streams)
    for query in plan.queries:
        if query.whole_input or query.updating:
            continue
        root = plan.nodes[query.root]
        repeated = [source for source, count in counts[query.root].items() if count > 1]
        if repeated:
            times = counts[query.root][repeated[0]]
            yield PlanError(
                f'{root.label} reads "{repeated[0]}" {times} times in one query',
                code="repeated-read",
                hint=f'Define the source "{repeated[0]}" a second time under another name, and '
                "read each of them once.",
                where=root.where,
            )

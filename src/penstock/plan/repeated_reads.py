"""Sources that a query reads several times, by one path or by several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from penstock.plan.node import Node


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
            times = node.relation.reads.get(input_, 1) if node.relation is not None else 1
            for source, count in counts[input_].items():
                counts[name][source] += count * times
    return counts

"""Side outputs of a plan: the nodes that they can observe, and the queries that copy rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.model import Observer, Query
from penstock.plan.node import Node
from penstock.spec.source_map import Route, SourceMap


def observed_by(queries: Sequence[Query], observers: Sequence[Observer]) -> tuple[Query, ...]:
    """Returns queries with the nodes that they copy for side outputs: each node by one query."""
    wanted: dict[str, int] = {}
    for observer in observers:
        for name in observer.inputs:
            wanted[name] = max(wanted.get(name, 0), observer.max_rows)
    found = []
    for query in queries:
        names = [name for name in observable(query) if name in wanted]
        found.append(replace(query, observed={name: wanted.pop(name) for name in names}))
    return tuple(found)


def check_side_outputs(
    observers: Sequence[Observer], nodes: Mapping[str, Node], queries: Sequence[Query],
    invalid: Collection[str], source_map: SourceMap,
) -> Iterator[PlanError]:  # fmt: skip
    """Yields the errors of inputs of side outputs that do not exist or are in no batch."""
    known = {name for query in queries for name in observable(query)}
    for observer in observers:
        for index, name in enumerate(observer.inputs):
            if name in known or name in invalid:
                continue
            route: Route = ("side_outputs", observer.name, "from", index)
            where = source_map.value(route if source_map.find(route) else route[:-1])
            if name not in nodes or nodes[name].kind == "sink":
                yield PlanError(
                    f'there is no source or transform "{name}"', code="unknown-input", where=where,
                    hint=did_you_mean(name, known),
                )  # fmt: skip
            else:
                yield PlanError(
                    f'a side output cannot observe "{name}", which is computed within a stream',
                    code="invalid-option", where=where,
                    hint=f"observe one of {', '.join(sorted(known))}",
                )  # fmt: skip


def observable(query: Query) -> tuple[str, ...]:
    """Returns the nodes whose rows are computed for each batch of a query."""
    roots = query.merged or (query.root,)
    return (*roots, *query.batch_nodes)

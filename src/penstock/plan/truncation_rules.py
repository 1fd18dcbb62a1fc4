"""Rules of sources whose truncations empty the targets (`on_truncate: apply`).

A truncation has no rows. So it reaches a sink only through transforms that keep no row of an
earlier batch, and the sink must have the rows of this source alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import PlanError
from penstock.plan.graph import stream_sources, upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.node_errors import node_error
from penstock.sdk import Capability
from penstock.sdk.columns.names import fold
from penstock.sdk.database import TableName

_CODE = "unsupported-truncation"


def truncations_empty_targets(plan: Plan) -> Iterator[PlanError]:
    """Checks that a truncation of a source can empty all its targets."""
    for source in plan.of("source"):
        if not source.source.truncates or source.name not in plan.streams:
            continue
        stops: set[str] = set()
        for node in plan.nodes.values():
            above = upstream([node.name], plan.nodes)
            if source.name not in above or above & stops:
                continue
            problem = _problem(node, source, plan)
            if problem is not None:
                stops.add(node.name)
                yield _error(node, problem, source)


def _error(node: Node, problem: str, source: Node) -> PlanError:
    problem = f"{problem}, and {source.label} has on_truncate: apply"
    hint = (
        f'Set on_truncate: fail or ignore on source "{source.written_name}", or write its rows by '
        "stateless transforms to a table of a database of their own, with mode: upsert."
    )
    return node_error(node, problem, _CODE, hint)


def _problem(node: Node, source: Node, plan: Plan) -> str | None:
    """Returns why a truncation of a source cannot pass a node downstream, or None."""
    if node.kind == "sink":
        return _problem_of_sink(node, plan)
    function = node.batch_function
    if node.dynamic_table is not None:
        return "keeps values of earlier rows"
    if node.stateful or node.updating or (function is not None and function.carries_rows):
        return "keeps earlier rows in its state"
    if stream_sources(node.name, plan.nodes, plan.streams) != [source.name]:
        return "merges rows of several streams"
    return None


def _problem_of_sink(node: Node, plan: Plan) -> str | None:
    if node.sink.mode != "upsert" or node.operation is None:
        return "keeps rows that are deleted"
    if not node.can(Capability.TRUNCATE):
        return "cannot remove all rows of its target at once"
    shared = [each for each in plan.of("sink") if each is not node and _share_table(each, node)]
    return f'has the table of sink "{shared[0].written_name}"' if shared else None


def _share_table(first: Node, second: Node) -> bool:
    """Returns whether two sinks may have the same table, by the names in their options."""
    options = [
        node.component.config.model_dump(include={"url", "path", "table"})
        for node in (first, second)
    ]
    tables = [each.pop("table", None) for each in options]
    if options[0] != options[1] or None in tables:
        return False
    names = [[fold(part) for part in reversed(TableName.parse(table).parts)] for table in tables]
    # A name without a schema may be in any schema.
    return all(one == other for one, other in zip(*names, strict=False))

"""Nodes whose tasks use files of the state directory, which executors of a cluster read and write.

The driver serves some of these files to executors that do not share the directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.core.served_state import serves_state
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.sdk import Capability
from penstock.sdk.data_frames import DataFrameSource
from penstock.sdk.phases import receiving_source


class ExecutorState(NamedTuple):
    """The content of a node in the state directory. `instead` is the hint of an alternative.

    `is_served` is whether the driver serves it.
    """

    node: Node
    content: str
    instead: str = ""
    is_served: bool = False


def executor_state(plan: Plan) -> Iterator[ExecutorState]:
    """Yields the content of each node whose tasks use files of the state directory."""
    streaming = {name for query in plan.queries for name in query.stream_nodes}
    updating = {name for query in plan.queries for name in _with_updating_state(plan, query)}
    for node in plan.nodes.values():
        in_spark = node.stateful and node.name in streaming and not node.updating
        found = _content(node, in_spark=in_spark)
        if node.name in updating and (found is None or found.is_served):
            found = ExecutorState(node, "the state of an updating query", is_served=True)
        if found is not None:
            yield found


def shared_state(plan: Plan) -> list[ExecutorState]:
    """Returns the content that requires a state directory that all machines share."""
    serves = serves_state(plan.spec.runtime.spark)
    return [state for state in executor_state(plan) if not (serves and state.is_served)]


def _content(node: Node, *, in_spark: bool) -> ExecutorState | None:
    """Returns the content of a node, unless it is the state of an updating query.

    A transform that is computed once for the whole input keeps no state.
    """
    if receiving_source(node.component) is not None:
        instead = ", or send the messages to a broker such as Kafka"
        return ExecutorState(node, "received messages", instead, is_served=True)
    if isinstance(node.component, DataFrameSource):
        return ExecutorState(node, "the rows that Spark has read")
    if node.in_state:
        return ExecutorState(node, "its rows")
    if node.lookup is not None and not node.can(Capability.LOOKUP_BY_KEY):
        instead = ", or read the table once by static: true"
        return ExecutorState(node, "its rows", instead, is_served=True)
    if in_spark:
        return ExecutorState(node, "the state of a query")
    if node.batch_function is not None and node.batch_function.carries_rows:
        return ExecutorState(node, "rows for the next batch")
    return None


def _with_updating_state(plan: Plan, query: Query) -> Sequence[str]:
    """Returns the nodes with the state of an updating query: those with groups or joins, if any."""
    if not query.updating:
        return ()
    nodes = [plan.nodes[name] for name in (*query.stream_nodes, *query.batch_nodes)]
    updating = [node for node in nodes if node.updating] or nodes
    return [node.name for node in updating if node.stateful] or [node.name for node in updating]

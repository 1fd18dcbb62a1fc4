"""Captures: sinks to the driver's memory, for the rows of the nodes of a plan."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.queries import make_queries
from penstock.sdk import BatchId, Capability, Config, Context, Failure, Receipt, Sink, Writer
from penstock.spec.node_models import SinkSpec


def capture_nodes(
    plan: Plan, names: Iterable[str], *, max_rows: int | None = None
) -> tuple[Plan, dict[str, Capture]]:
    """Returns the plan with captures at the named nodes as its only sinks, and the captures.

    Nodes that lead to no capture are removed. A capture replaces a named sink and keeps its mode.
    The fills of the dynamic tables that remain are sinks, too, and the capture of a fill has its
    input. A static node has no capture. Raises PlanError for an unknown name.
    """
    streams = plan.streams
    captures: dict[str, Capture] = {}
    sinks: dict[str, Node] = {}
    selected = list(dict.fromkeys(names))
    final_nodes = {name for query in plan.final_queries for name in query.batch_nodes}
    for name in selected:
        node = plan.nodes.get(name)
        if node is None:
            raise PlanError(
                f'there is no node "{name}"', code="unknown-node",
                hint=did_you_mean(name, plan.nodes),
            )  # fmt: skip
        if node.kind == "sink" and node.dynamic_table is not None:
            node = plan.nodes[node.inputs[0]]
        if name in streams:
            sink_name = name if node.kind == "sink" else f"@{name}"
            original = node.sink if node.kind == "sink" else None
            captures[name] = Capture(Context(plan.name, sink_name, None), original, max_rows)
            captures[name].operation = node.operation
            sinks[sink_name] = _capture_node(node, sink_name, captures[name], name in final_nodes)
    needed = upstream(sinks, {**plan.nodes, **sinks}) | set(upstream(selected, plan.nodes))
    needed |= {name for name in selected if plan.nodes[name].kind != "sink"}
    needed |= _tables_of(plan, needed)
    nodes = {name: node for name, node in plan.nodes.items() if name in needed} | sinks
    final = {query.name for query in plan.final_queries}
    queries = make_queries(nodes, streams | sinks.keys(), final)
    return replace(plan, nodes=nodes, queries=queries, dead_letter=None), captures


def _tables_of(plan: Plan, names: Iterable[str]) -> set[str]:
    """Returns the nodes of the dynamic tables that nodes check, and the nodes upstream."""
    found: set[str] = set()
    pending = [table for name in names for table in plan.nodes[name].checked_tables]
    while pending:
        table = pending.pop()
        fill = plan.fill_of(table)
        parts = {table} if fill is None else {table, fill.name} | upstream([fill.name], plan.nodes)
        added = parts - found
        found |= added
        pending += [each for name in added for each in plan.nodes[name].checked_tables]
    return found


def _capture_node(node: Node, name: str, capture: Capture, final: bool) -> Node:
    """Returns the sink that captures a node. `final` excludes rows that a later row replaces."""
    if node.kind == "sink":
        return replace(node, component=capture)
    mode = {"mode": "append"} if final else {}
    spec = SinkSpec.model_validate({"type": "capture", "from": node.name, **mode})
    return Node(name, "sink", capture, spec, (node.name,), node.where)


class Capture(Sink[Config]):
    """A sink to the driver's memory.

    A capture of a sink has the capabilities, the format, the mode and the primary key of
    `original`. Rows that the format cannot encode become dead letters, as in `original`. No
    external system is reached. `max_rows` limits the captured rows. Operations stay in their
    column.
    """

    operation: str | None = None

    def __init__(
        self, context: Context, original: Sink[Any] | None = None, max_rows: int | None = None
    ) -> None:
        super().__init__(Config(), context)
        self.max_rows = max_rows
        self._original = original
        self.capabilities = frozenset({Capability.ROWS, Capability.UPSERT})
        if original is not None:
            self.format = original.format.offline() if original.format else None
            self.capabilities = original.capabilities
            self.mode, self.primary_key = original.mode, original.primary_key
        self._batches: dict[BatchId, pa.Table] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batches": {}, "_original": None}

    def check_schema(self, columns: pa.Schema) -> None:
        if self._original is not None:
            self._original.check_schema(columns)

    @property
    def table(self) -> pa.Table | None:
        """The rows in the order of the batches; None before the first rows."""
        tables = list(self._batches.values())
        return pa.concat_tables(tables).slice(0, self.max_rows) if tables else None

    @property
    def count(self) -> int:
        """The number of captured rows."""
        rows: int = sum(table.num_rows for table in list(self._batches.values()))
        return rows if self.max_rows is None else min(rows, self.max_rows)

    @property
    def full(self) -> bool:
        """Whether `max_rows` is reached."""
        return self.max_rows is not None and self.count >= self.max_rows

    def writer(
        self, client: None, batch: BatchId, partition: int, schema: pa.Schema
    ) -> CaptureWriter:
        return CaptureWriter(partition, schema, self.max_rows, self.operation)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        parts = [
            pa.ipc.open_stream(base64.b64decode(receipt["arrow"])).read_all()
            for receipt in sorted(receipts, key=lambda receipt: int(receipt["partition"]))
        ]
        if parts and not self.full:
            self._batches[batch] = pa.concat_tables(parts)


class CaptureWriter(Writer):
    """A writer that packs the rows of a partition into its receipt."""

    def __init__(
        self, partition: int, schema: pa.Schema, max_rows: int | None, operation: str | None
    ) -> None:
        self._partition = partition
        self._remaining = max_rows
        self._operation = operation
        self._buffer = pa.BufferOutputStream()
        self._stream: pa.RecordBatchStreamWriter | None = None
        self._schema = schema

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        if operations is not None and self._operation is not None:
            rows = rows.append_column(self._operation, operations)
        head = rows.slice(0, self._remaining)
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._buffer, rows.schema)
        if self._remaining is not None:
            self._remaining -= head.num_rows
        self._stream.write_batch(head)
        return ()

    def commit(self) -> Receipt:
        if self._stream is None:
            self._stream = pa.ipc.new_stream(self._buffer, self._schema)
        self._stream.close()
        packed = base64.b64encode(self._buffer.getvalue()).decode()
        return {"partition": self._partition, "arrow": packed}

"""Creation of the tasks that read sources."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError
from penstock.core.text import did_you_mean
from penstock.engine.build_context import BuildContext
from penstock.engine.catalyst.columns import exchange_schema
from penstock.engine.sources.gap import make_gap
from penstock.engine.sources.sentinel import END_OF_TIME
from penstock.engine.sources.served_journal import serve_journal
from penstock.engine.sources.source import SourceTask
from penstock.engine.tasks.event_time import LATEST
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk import ReplayableSource, Source
from penstock.spec.node_models import SourceSpec

S = TypeVar("S", bound=Source[Any])


def make_source_task(context: BuildContext, node: Node, query: Query) -> SourceTask:
    """Returns the task of reading a source for a query, with columns in Spark's types."""
    source = node.source
    assert isinstance(node.spec, SourceSpec)
    if not isinstance(source, ReplayableSource):
        raise PlanError(f"{node.label} is not replayable", code="not-replayable")
    rows, metadata = source_rows(node), source.metadata_columns
    typed = typed_source(source, rows)
    serve_journal(typed)
    watermark = None if node.computes_event_time else node.watermark
    if watermark is not None and watermark.column not in rows.names:
        raise OptionError.of(
            "watermark", "column",
            message=f'{node.label} has its watermark on "{watermark.column}", '
            "which is not a column",
            code="unknown-column", hint=did_you_mean(watermark.column, rows.names),
        )  # fmt: skip
    return SourceTask(
        typed, rows, metadata, context.make_spool(node, query, "decode"),
        watermark.column if watermark else None, context.sentinel_only,
        closes_windows=context.closes_windows,
        poll_timeout=_poll_timeout(context, query), latest_time=_latest_time(context, node),
        whole_input=query.whole_input,
        checkpoint=None if context.checkpoint is None else str(context.checkpoint),
        operation=_checked_operation(node, query), gap=make_gap(context.checkpoint, *context.wait),
    )  # fmt: skip


def _checked_operation(node: Node, query: Query) -> str | None:
    """Returns the declared operation column of rows that a table or a state takes in, or None.

    Sinks check the operations of other rows.
    """
    assert isinstance(node.spec, SourceSpec)
    is_taken_in = query.updating or node.lookup is not None
    return node.spec.operation_column if is_taken_in and not node.source.adds_operations() else None


def source_rows(node: Node) -> pa.Schema:
    """Returns the columns of a source, and of its metadata, in Spark's types."""
    source = node.source
    if source.columns is None:
        raise PlanError(
            f"{node.label} has no schema", code="missing-schema",
            hint="Declare the columns, as in schema: id LONG, name STRING, at TIMESTAMP.",
        )  # fmt: skip
    available, fields = source.metadata_schema(), list(source.columns)
    for column, name in source.metadata_columns.items():
        fields.append(available.field(name).with_name(column))
    return exchange_schema(pa.schema(fields))


def typed_source(source: S, rows: pa.Schema) -> S:
    """Returns a source whose columns have Spark's types."""
    assert source.columns is not None
    typed = copy.copy(source)
    fields = list(rows)[: len(source.columns)]
    typed.columns = pa.schema(fields, source.columns.metadata)
    return typed


def _latest_time(context: BuildContext, node: Node) -> datetime | None:
    """Returns the end of the event times of a source with windows downstream, or None."""
    if node.watermark is None or node.computes_event_time or not context.has_windows_below(node):
        return None
    # The last batch of a case holds the sentinel row.
    return END_OF_TIME + timedelta(days=1) if context.with_sentinel else LATEST


def _poll_timeout(context: BuildContext, query: Query) -> float:
    """Returns the maximum seconds of a poll, during which other sources of the query wait."""
    alone = sum(context.plan.nodes[name].kind == "source" for name in query.stream_nodes) == 1
    return 1.0 if alone else 0.1

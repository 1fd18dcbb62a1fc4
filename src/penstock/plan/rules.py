"""What must hold of a plan as a whole. Each rule gives the mistakes that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.model import Node, Plan
from penstock.sdk import Capability
from penstock.sdk.kit.columns import sql_name
from penstock.spec.models import SourceSpec

Rule = Callable[[Plan], Iterator[PlanError]]


def static_sources_end(plan: Plan) -> Iterator[PlanError]:
    """A static table is read whole, so its source must end."""
    for node in plan.of("source"):
        if node.static and not node.source.bounded():
            hint = "leave out static, or the option that makes it unbounded"
            yield _error(node, "has no end, so it cannot be static", "static-unbounded", hint)


def something_streams(plan: Plan) -> Iterator[PlanError]:
    """A sink needs a stream above it: a pipeline of static tables alone has nothing to run."""
    streams = plan.streams
    for node in plan.of("sink"):
        if node.inputs[0] not in streams:
            problem = "gets no stream: all sources above it are static"
            hint = "leave out static: true on the source that drives the pipeline"
            yield _error(node, problem, "no-stream", hint)


def watermark_columns_exist(plan: Plan) -> Iterator[PlanError]:
    """A watermark is on a column, and of type TIMESTAMP."""
    for node in plan.of("source"):
        watermark = getattr(node.spec, "watermark", None)
        columns = node.source.columns
        if watermark is None or columns is None:
            continue
        name = watermark.column
        known = [*columns.names, *node.source.metadata_columns]
        problem = f'has its watermark on "{name}", which is'
        if name not in known:
            hint = did_you_mean(name, known)
            yield _error(node, f"{problem} not a column", "unknown-column", hint)
        elif name in columns.names and not pa.types.is_timestamp(columns.field(name).type):
            problem = f"{problem} {sql_name(columns.field(name).type)}, not TIMESTAMP"
            hint = "declare it as TIMESTAMP, or cast it in a transform"
            yield _error(node, problem, "wrong-type", hint)


def modes_fit_sinks(plan: Plan) -> Iterator[PlanError]:
    """A sink's mode is one that its system has, and an upsert knows its key."""
    for node in plan.of("sink"):
        if node.sink.mode == "append":
            continue
        if not node.can(Capability.UPSERT):
            yield _error(node, "cannot replace rows", "unsupported-mode", "use mode: append")
        elif node.sink.mode == "upsert" and not node.sink.primary_key:
            problem = "replaces rows (mode: upsert) and has no primary key"
            yield _error(node, problem, "missing-option", "add primary_key: [COLUMN, ...]")


def read_once_before_removed(plan: Plan) -> Iterator[PlanError]:
    """Files are moved or deleted after one query has read them; a second one would miss them."""
    for node in plan.of("source"):
        if getattr(node.component.config, "after", "keep") == "keep":
            continue
        readers = [query.name for query in plan.queries if node.name in query.within]
        if len(readers) > 1:
            problem = f"puts files away after reading, but {len(readers)} queries read them"
            hint = f"use after: keep, or give each of {', '.join(readers)} a source of its own"
            yield _error(node, problem, "read-twice", hint)


def keys_exist(plan: Plan) -> Iterator[PlanError]:
    """A source's primary key is made of its columns."""
    for node in plan.of("source"):
        assert isinstance(node.spec, SourceSpec)
        columns = node.source.columns
        for key in node.spec.primary_key:
            if columns is not None and key not in columns.names:
                problem = f'has "{key}" in its primary key, which is not a column'
                hint = did_you_mean(key, columns.names)
                yield _error(node, problem, "unknown-column", hint)


def _error(node: Node, problem: str, code: str, hint: str | None) -> PlanError:
    return PlanError(f"{node.label} {problem}", code=code, hint=hint, where=node.where)


ALL: tuple[Rule, ...] = (
    static_sources_end,
    watermark_columns_exist,
    modes_fit_sinks,
    read_once_before_removed,
    keys_exist,
)

"""What must hold of a plan as a whole. Each rule gives the mistakes that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.model import Node, Plan
from penstock.sdk import Capability
from penstock.spec.models import SinkSpec, SourceSpec

Rule = Callable[[Plan], Iterator[PlanError]]


def static_sources_end(plan: Plan) -> Iterator[PlanError]:
    """A static table is read whole, so its source must end."""
    for node in plan.of("source"):
        if node.static and not node.source.bounded():
            yield _error(node, "has no end, so it cannot be static", "static-unbounded",
                         "leave out static, or the option that makes it unbounded")  # fmt: skip


def something_streams(plan: Plan) -> Iterator[PlanError]:
    """A sink needs a stream above it: a pipeline of static tables alone has nothing to run."""
    streams = plan.streams
    for node in plan.of("sink"):
        if node.inputs[0] not in streams:
            yield _error(node, "gets no stream: all sources above it are static", "no-stream",
                         "leave out static: true on the source that drives the pipeline")  # fmt: skip


def watermark_columns_exist(plan: Plan) -> Iterator[PlanError]:
    """A watermark is on a column, and of type TIMESTAMP."""
    for node in plan.of("source"):
        watermark = getattr(node.spec, "watermark", None)
        columns = node.source.columns
        if watermark is None or columns is None:
            continue
        known = [*columns.names, *node.source.metadata_columns]
        if watermark.column not in known:
            yield _error(node, f'has its watermark on "{watermark.column}", which is not a column',
                         "unknown-column", did_you_mean(watermark.column, known))  # fmt: skip
        elif watermark.column in columns.names:
            type_ = columns.field(watermark.column).type
            if not str(type_).startswith("timestamp"):
                yield _error(node, f'has its watermark on "{watermark.column}", which is {type_}, not TIMESTAMP',
                             "wrong-type", "declare it as TIMESTAMP, or cast it in a transform")  # fmt: skip


def modes_fit_sinks(plan: Plan) -> Iterator[PlanError]:
    """A sink's mode is one that its system has, and an upsert knows its key."""
    for node in plan.of("sink"):
        assert isinstance(node.spec, SinkSpec)
        if node.spec.mode == "upsert":
            if not node.can(Capability.UPSERT):
                yield _error(node, "cannot replace rows", "unsupported-mode", "use mode: append")
            elif not node.spec.primary_key:
                yield _error(node, "has mode: upsert and no primary key", "missing-option",
                             "add primary_key: [COLUMN, ...]")  # fmt: skip


def keys_exist(plan: Plan) -> Iterator[PlanError]:
    """A source's primary key is made of its columns."""
    for node in plan.of("source"):
        assert isinstance(node.spec, SourceSpec)
        columns = node.source.columns
        for key in node.spec.primary_key:
            if columns is not None and key not in columns.names:
                yield _error(node, f'has "{key}" in its primary key, which is not a column',
                             "unknown-column", did_you_mean(key, columns.names))  # fmt: skip


def _error(node: Node, problem: str, code: str, hint: str | None) -> PlanError:
    return PlanError(f"{node.label} {problem}", code=code, hint=hint, where=node.where)


ALL: tuple[Rule, ...] = (
    static_sources_end,
    something_streams,
    watermark_columns_exist,
    modes_fit_sinks,
    keys_exist,
)

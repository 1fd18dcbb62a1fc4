"""Compaction of the tables of sinks, for `penstock compact`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.plan.model import Plan
from penstock.sdk.lakes.commits import repeat_conflicts
from penstock.sdk.lakes.compaction import DEFAULT_SIZE, Compacted, CompactingSink


@dataclass(frozen=True)
class CompactedSink:
    """The result of a sink."""

    node: str
    files: Compacted


def compact(
    plan: Plan, nodes: Sequence[str] = (), size: int | None = None
) -> Iterator[CompactedSink]:
    """Combines the small files of sinks, by default of all sinks of tables, one after another.

    `size` is that of the combined files, by default that of the option `compact` of the sink. Also
    works beside a run: a commit that conflicts with one of the run is repeated. Raises PlanError
    for a node without a table, and Transient or Permanent.
    """
    sinks = _sinks(plan)
    for name in nodes:
        _check_node(plan, name, sinks)
    if not sinks:
        raise PlanError(
            f"{plan.name} has no sink whose files can be combined", code="unknown-node",
            hint="Sinks of the types delta and iceberg have such files.",
        )  # fmt: skip
    for name in nodes or sinks:
        yield CompactedSink(name, _compact(sinks[name], size))


def _sinks(plan: Plan) -> dict[str, CompactingSink[Any]]:
    sinks = {node.name: node.sink for node in plan.of("sink")}
    return {name: sink for name, sink in sinks.items() if isinstance(sink, CompactingSink)}


def _check_node(plan: Plan, name: str, sinks: dict[str, CompactingSink[Any]]) -> None:
    if name in sinks:
        return
    if name in plan.nodes:
        raise PlanError(
            f'the files of "{name}" cannot be combined: it is not a sink of a table',
            code="unknown-node", hint=f"Name one of {', '.join(sinks) or 'no sinks'}.",
        )  # fmt: skip
    hint = did_you_mean(name, sinks) or f"Name one of {', '.join(sinks) or 'no sinks'}."
    raise PlanError(f'there is no node "{name}"', code="unknown-node", hint=hint)


def _compact(sink: CompactingSink[Any], size: int | None) -> Compacted:
    rule = sink.config.compact
    wanted = size or (rule.size if rule is not None else DEFAULT_SIZE)
    found = Compacted()

    def attempt() -> None:
        nonlocal found
        found = sink.compact(wanted)

    try:
        repeat_conflicts(attempt, sink.context.node)
    finally:
        sink.close()
    return found

"""How often a record arrives in a sink when a run is interrupted, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.plan.model import Node, Plan
from penstock.plan.queries import upstream
from penstock.sdk import Capability, ReceivingSource
from penstock.sdk.component import Level
from penstock.spec.models import SinkSpec


@dataclass(frozen=True)
class Guarantee:
    """`because` are the reasons of the level; `notes` are what else may surprise."""

    level: Level
    because: tuple[str, ...]
    notes: tuple[str, ...] = ()


def guarantee(plan: Plan, sink: Node) -> Guarantee:
    """What a sink of the plan can promise, as far as the plan tells."""
    names = upstream([sink.name], plan.nodes)
    above = [node for name, node in plan.nodes.items() if name in names]
    notes = tuple(_notes(sink, above))
    lost = tuple(_lost(above))
    if lost:
        return Guarantee("at most once", lost, notes)
    repeated = tuple(_repeated(sink, above))
    if repeated:
        return Guarantee("at least once", repeated, notes)
    because = (
        "the sources can be read again",
        "the same records always give the same rows",
        f"{sink.label} writes a batch once, also when it is repeated after a crash",
    )
    return Guarantee("exactly once", because, notes)


def _lost(above: list[Node]) -> Iterator[str]:
    for node in above:
        if node.kind == "source" and not node.can(Capability.REPLAY):
            yield f"{node.label} cannot be read again: what was under way in a crash is lost"


def _repeated(sink: Node, above: list[Node]) -> Iterator[str]:
    if not sink.can(Capability.EXACTLY_ONCE):
        assert isinstance(sink.spec, SinkSpec)
        if sink.spec.mode == "upsert":
            keys = ", ".join(sink.spec.primary_key)
            yield (
                f"{sink.label} writes a batch again that is repeated after a crash, "
                f"and replaces the rows with the same {keys}"
            )
        else:
            yield f"{sink.label} writes a batch again that is repeated after a crash"
    for node in above:
        if not node.deterministic:
            hint = ", unless it says deterministic: true" if node.batch_function else ""
            yield f"{node.label} may give other rows when a batch is repeated{hint}"


def _notes(sink: Node, above: list[Node]) -> Iterator[str]:
    for node in above:
        if isinstance(node.component, ReceivingSource):
            taken = node.component.guarantee
            yield f"{node.label} takes a message {taken}; the rest is about what it has on disk"
    for node in (*above, sink):
        if node.on_error == "drop":
            yield f"{node.label} drops records that it fails on"
        if node.static:
            yield f"{node.label} is read again at each start, and may have changed"
        watermark = getattr(node.spec, "watermark", None)
        if watermark and any(each.stateful for each in above):
            yield (
                f'rows of {node.label} that are older than the newest "{watermark.column}" by more '
                "than the watermark's delay may come too late for their window, and are left out"
            )

"""Delivery guarantees of the sinks of a plan, with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk import Capability
from penstock.sdk.component import Level
from penstock.sdk.phases import receiving_source


@dataclass(frozen=True)
class Guarantee:
    """A delivery guarantee. `notes` are further limitations."""

    level: Level
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()


def guarantee(plan: Plan, sink: Node) -> Guarantee:
    """Returns the delivery guarantee of a sink, as far as the plan determines it."""
    names = upstream([sink.name], plan.nodes)
    names |= {table for name in names for table in plan.nodes[name].checked_tables}
    above = [node for name, node in plan.nodes.items() if name in names]
    notes = tuple(_notes(sink, above))
    losses = tuple(_losses(above))
    if losses:
        return Guarantee("at most once", losses, notes)
    repetitions = tuple(_repetitions(sink, above))
    if repetitions:
        return Guarantee("at least once", repetitions, notes)
    reasons = (
        "the sources are replayable",
        "the transforms are deterministic",
        f"{sink.label} writes a batch once, also when it is retried after a crash",
    )
    return Guarantee("exactly once", reasons, notes)


def _losses(above: list[Node]) -> Iterator[str]:
    for node in above:
        by_key = node.can(Capability.LOOKUP_BY_KEY)
        if node.kind == "source" and not node.can(Capability.REPLAY) and not by_key:
            yield f"{node.label} is not replayable: a crash loses the records in progress"


def _repetitions(sink: Node, above: list[Node]) -> Iterator[str]:
    if not sink.can(Capability.EXACTLY_ONCE):
        if sink.sink.mode == "upsert":
            keys = ", ".join(sink.sink.primary_key)
            yield (
                f"{sink.label} writes a batch again when it is retried after a crash, "
                f"and replaces the rows with the same {keys}"
            )
        else:
            yield f"{sink.label} writes a batch again when it is retried after a crash"
    for node in above:
        if node.can(Capability.LOOKUP_BY_KEY) and not node.in_state:
            yield f"{node.label} may have other rows when a batch is retried"
        if not node.deterministic:
            hint = " (unless deterministic: true is set)" if node.batch_function else ""
            yield f"{node.label} may return other rows when a batch is retried{hint}"


def _notes(sink: Node, above: list[Node]) -> Iterator[str]:
    for node in above:
        receiving = receiving_source(node.component)
        if receiving is not None:
            level = receiving.guarantee
            yield f"{node.label} receives a message {level}; the guarantee covers the journal"
    for node in (*above, sink):
        if node.on_error == "drop":
            yield f"{node.label} drops failing records"
        if node.in_state:
            continue
        if node.can(Capability.LOOKUP_BY_KEY):
            yield f"{node.label} is read by key, and its rows are those of the time of a batch"
        elif node.lookup:
            yield f"{node.label} is read when it changes; a batch keeps its rows when it is retried"
        elif node.static:
            yield f"{node.label} is read at each start and may have changed"
        watermark = node.watermark
        if watermark and (waiting := [each for each in above if _drops_late_rows(each)]):
            is_dedupe = all(each.state and each.state.emits_final_rows for each in waiting)
            late = "late" if is_dedupe else "late for their window"
            yield (
                f'rows of {node.label} that are older than the newest "{watermark.column}" by more '
                f"than the watermark's delay may be {late} and are dropped"
            )


def _drops_late_rows(node: Node) -> bool:
    return node.stateful and not node.updating

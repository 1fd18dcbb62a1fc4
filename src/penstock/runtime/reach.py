"""Whether the systems of a plan can be reached."""

from __future__ import annotations

import queue
import threading
import time

from penstock.core.errors import Bug, PenstockError, Transient
from penstock.core.units import duration_text
from penstock.plan.model import Node, Plan


def unreachable(plan: Plan, *, timeout: float = 30.0) -> list[PenstockError]:
    """What hinders the plan's sources and sinks, all asked at once. Consumes and writes nothing.

    A system that does not answer within `timeout` seconds is one that cannot be reached.
    """
    nodes = [node for node in plan.nodes.values() if node.kind != "transform"]
    if plan.dead_letter is not None:
        nodes.append(plan.dead_letter)
    answers: queue.Queue[tuple[str, PenstockError | None]] = queue.Queue()
    for node in nodes:
        threading.Thread(target=_ask, args=(node, answers), daemon=True).start()
    deadline = time.monotonic() + timeout
    told: dict[str, PenstockError | None] = {}
    while len(told) < len(nodes):
        try:
            name, error = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        told[name] = error
    found = [told[node.name] if node.name in told else _silent(node, timeout) for node in nodes]
    return [error for error in found if error is not None]


def _ask(node: Node, answers: queue.Queue[tuple[str, PenstockError | None]]) -> None:
    error: PenstockError | None = None
    try:
        node.component.check()
        format_ = getattr(node.component, "format", None)
        if format_ is not None:
            format_.check()
    except PenstockError as raised:
        error = raised
        error.where = error.where or node.where
    except Exception as raised:
        error = Bug(f"{node.label}: {type(raised).__name__}: {raised}", where=node.where)
    answers.put((node.name, error))


def _silent(node: Node, timeout: float) -> Transient:
    return Transient(
        f"could not reach the system of {node.label}: no answer within {duration_text(timeout)}",
        code="timeout",
        where=node.where,
    )

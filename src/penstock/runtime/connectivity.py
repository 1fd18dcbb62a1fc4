"""Connectivity of a plan: checks of all external systems."""

from __future__ import annotations

import queue
import threading
import time

from penstock.core.errors import Bug, PenstockError, Transient
from penstock.core.units import duration_text
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk.transform import PayloadTransform


def check_connectivity(plan: Plan, *, timeout: float = 30.0) -> list[PenstockError]:
    """Connects to the systems of all nodes in parallel and returns the errors.

    Consumes and writes nothing. A system without an answer within `timeout` seconds is a
    Transient error with the code `timeout`.
    """
    nodes = [node for node in plan.nodes.values() if _has_system(node, plan)]
    if plan.dead_letter is not None:
        nodes.append(plan.dead_letter)
    answers: queue.Queue[tuple[str, PenstockError | None]] = queue.Queue()
    for node in nodes:
        threading.Thread(target=_check_node, args=(plan, node, answers), daemon=True).start()
    deadline = time.monotonic() + timeout
    results: dict[str, PenstockError | None] = {}
    while len(results) < len(nodes):
        try:
            name, error = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        results[name] = error
    errors = [
        results[node.name] if node.name in results else _timeout_error(node, timeout)
        for node in nodes
    ]
    return [error for error in errors if error is not None]


def _has_system(node: Node, plan: Plan) -> bool:
    """Returns whether a node has a system of its own.

    The sink that fills a dynamic table creates the table.
    """
    if node.kind == "source" and node.dynamic_table is not None:
        return plan.fill_of(node.dynamic_table) is None
    return node.kind != "transform" or isinstance(node.component, PayloadTransform)


def _check_node(
    plan: Plan, node: Node, answers: queue.Queue[tuple[str, PenstockError | None]]
) -> None:
    error: PenstockError | None = None
    try:
        node.component.check()
        format_ = getattr(node.component, "format", None)
        if format_ is not None:
            format_.check()
    except PenstockError as raised:
        error = raised
        error.where = plan.locate(error, node)
    except Exception as raised:
        error = Bug(f"{node.label}: {type(raised).__name__}: {raised}", where=node.where)
    answers.put((node.name, error))


def _timeout_error(node: Node, timeout: float) -> Transient:
    return Transient(
        f"could not reach the system of {node.label}: no answer within {duration_text(timeout)}",
        code="timeout",
        where=node.where,
    )

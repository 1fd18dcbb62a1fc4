"""Queries that are nested too deeply for the stack of Java."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from penstock.core.errors import OptionError
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sql.text.nesting import SPLIT, TOO_DEEP

OVERFLOW = "java.lang.StackOverflowError"
PROBLEM = "the query is nested too deeply, or an expression has too many parts"


@contextmanager
def locate_overflows(plan: Plan, nodes: Sequence[Node]) -> Iterator[None]:
    """Raises an error of the node with the longest SQL in place of an overflow of Java's stack."""
    try:
        yield
    except Py4JJavaError as error:
        if not _is_stack_overflow(error):
            raise
        raise too_deep(plan, max(nodes, key=_sql_length)) from error


def _is_stack_overflow(error: Py4JJavaError) -> bool:
    """Returns whether an error of Java is an overflow of its stack, or was caused by one."""
    java: Any = error.java_exception
    while java is not None:
        if java.getClass().getName() == OVERFLOW:
            return True
        java = java.getCause()
    return False


def too_deep(plan: Plan, node: Node) -> OptionError:
    """Returns the error of a node whose SQL is nested too deeply."""
    error = OptionError.of(
        "sql",
        message=f"{node.label}: {PROBLEM}",
        code=TOO_DEEP,
        hint=SPLIT,
    )
    error.where = plan.locate(error, node)
    return error


def _sql_length(node: Node) -> int:
    return sum(len(sql.text) for sql in node.sql_texts)

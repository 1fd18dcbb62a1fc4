"""Warnings about transforms whose columns are an assumption."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import PenstockError
from penstock.plan.model import Plan


def assumed_columns(plan: Plan) -> Iterator[PenstockError]:
    """Yields the warnings of the transforms of a plan, at their nodes."""
    for node in plan.of("transform"):
        if node.batch_function is None:
            continue
        for warning in node.batch_function.warnings():
            warning.where = warning.where or node.where
            yield warning

"""Interfaces of incremental plans: the state of operators, and a choice of the computed rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from penstock.engine.row_checks.result_rows import ResultRows
from penstock.engine.updating.accumulation import Accumulation
from penstock.engine.updating.operator import AffectedFrame, Input
from penstock.engine.updating.weighted import Weighted
from penstock.plan.node import Node

Select = Callable[[ResultRows, Weighted], Weighted]
"""A function that returns the chosen changes of an operator that combines rows."""


class State(Protocol):
    """The state of the operators of a query for one batch."""

    @property
    def expires(self) -> bool:
        """Whether rows expire in the first operator that keeps them."""

    @property
    def buckets(self) -> int:
        """The number of buckets of keys."""

    @property
    def is_empty(self) -> bool:
        """Whether no batch was computed before."""

    def affected_rows(
        self, operator: str, inputs: Sequence[Input], *, joins: bool = False
    ) -> AffectedFrame:
        """Returns the rows of the keys that changes affect; with `joins` those of an inner join."""

    def accumulate(self, operator: str, accumulation: Accumulation) -> Weighted:
        """Returns the changes of an aggregate that accumulates."""


class Selection(Protocol):
    """A choice of the rows of transforms that are computed."""

    def select_inputs(
        self, node: Node, weighted: Mapping[str, DataFrame]
    ) -> Mapping[str, DataFrame]:
        """Returns the chosen rows of the weighted inputs of a transform."""

    def select_results(
        self, node: Node, leaves: frozenset[int], results: ResultRows, changes: Weighted
    ) -> Weighted:
        """Returns the chosen changes of an operator of a transform that combines rows.

        `leaves` are the RDDs in place of the inputs with weights.
        """

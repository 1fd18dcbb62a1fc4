"""Columns of numbers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.generate.spec import Spec
from penstock.sdk.kit.clock import Clock
from penstock.sdk.kit.random import Integers, Stream


class Sequence(Spec):
    """Whole numbers that grow by `step`."""

    type: Literal["sequence"] = "sequence"
    """A number that grows from row to row."""
    start: int = 0
    """The first number."""
    step: int = 1
    """How much it grows."""

    def kind(self) -> pa.DataType:
        return pa.int64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return pa.array(rows * self.step + self.start)


class Integer(Spec):
    """Whole numbers between two bounds."""

    type: Literal["integer"]
    """Whole numbers, all equally likely."""
    min: int = 0
    """The smallest."""
    max: int = 100
    """The largest."""

    @model_validator(mode="after")
    def _ordered(self) -> Integer:
        if not -(2**63) <= self.min <= self.max < 2**63:
            raise ValueError("min must not be larger than max, and both fit into 64 bits")
        return self

    def kind(self) -> pa.DataType:
        return pa.int64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return pa.array(stream.integers(rows, self.min, self.max))


class Number(Spec):
    """Numbers between two bounds."""

    type: Literal["number"]
    """Numbers, all equally likely."""
    min: float = 0
    """The smallest."""
    max: float = 1
    """The bound that is not reached."""
    decimals: int | None = Field(default=None, ge=0, le=15)
    """Round to so many decimals."""

    def kind(self) -> pa.DataType:
        return pa.float64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return _rounded(self.min + (self.max - self.min) * stream.uniform(rows), self.decimals)


class Normal(Spec):
    """Numbers around a mean."""

    type: Literal["normal"]
    """Numbers of a normal distribution."""
    mean: float = 0
    """The middle."""
    deviation: float = 1
    """The standard deviation."""
    decimals: int | None = Field(default=None, ge=0, le=15)
    """Round to so many decimals."""

    def kind(self) -> pa.DataType:
        return pa.float64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return _rounded(stream.normal(rows, self.mean, self.deviation), self.decimals)


class Boolean(Spec):
    """True or false."""

    type: Literal["boolean", "bool"]
    """True or false."""
    true: float = Field(default=0.5, ge=0, le=1)
    """The share of true values."""

    def kind(self) -> pa.DataType:
        return pa.bool_()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return pa.array(stream.uniform(rows) < self.true)


def _rounded(values: Any, decimals: int | None) -> pa.Array:
    return pa.array(values if decimals is None else np.round(values, decimals))

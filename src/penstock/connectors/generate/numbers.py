"""Field types: their base, numbers and booleans."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from penstock.sdk import Config
from penstock.sdk.synthetic.clock import Clock
from penstock.sdk.synthetic.random import Integers, Stream


class FieldType(Config):
    """Base of field types: the type of a column, and its values as a function of row numbers."""

    nulls: float = Field(default=0, ge=0, le=1)
    """The fraction of values that are null."""

    @abstractmethod
    def kind(self) -> pa.DataType:
        """Returns the type of the column."""

    @abstractmethod
    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        """Returns the values of rows."""

    def column(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        """Returns the values of rows, with nulls."""
        values = self.make(rows, stream, clock)
        if not self.nulls:
            return values
        null = pa.array(stream.child("nulls").uniform(rows) < self.nulls)
        return pc.if_else(null, pa.scalar(None, values.type), values)


class Sequence(FieldType):
    """Consecutive integers."""

    type: Literal["sequence"] = "sequence"
    """Integers that increase by `step`."""
    start: int = 0
    """The first number."""
    step: int = 1
    """The increment."""

    def kind(self) -> pa.DataType:
        return pa.int64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return pa.array(rows * self.step + self.start)


class Integer(FieldType):
    """Random integers."""

    type: Literal["integer"]
    """Uniformly distributed integers."""
    min: int = 0
    """The minimum."""
    max: int = 100
    """The maximum."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Integer:
        if not -(2**63) <= self.min <= self.max < 2**63:
            raise ValueError("expected min to be at most max, both in the range of 64 bits")
        return self

    def kind(self) -> pa.DataType:
        return pa.int64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return pa.array(stream.integers(rows, self.min, self.max))


class Number(FieldType):
    """Random floating-point numbers."""

    type: Literal["number"]
    """Uniformly distributed numbers."""
    min: float = 0
    """The minimum."""
    max: float = 1
    """The exclusive upper bound."""
    decimals: int | None = Field(default=None, ge=0, le=15)
    """The number of decimal places. Unrounded by default."""

    def kind(self) -> pa.DataType:
        return pa.float64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return _round(self.min + (self.max - self.min) * stream.uniform(rows), self.decimals)


class Normal(FieldType):
    """Random numbers around a mean."""

    type: Literal["normal"]
    """Normally distributed numbers."""
    mean: float = 0
    """The mean."""
    deviation: float = 1
    """The standard deviation."""
    decimals: int | None = Field(default=None, ge=0, le=15)
    """The number of decimal places. Unrounded by default."""

    def kind(self) -> pa.DataType:
        return pa.float64()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return _round(stream.normal(rows, self.mean, self.deviation), self.decimals)


class Boolean(FieldType):
    """True or false."""

    type: Literal["boolean", "bool"]
    """True or false."""
    true: float = Field(default=0.5, ge=0, le=1)
    """The fraction of true values."""

    def kind(self) -> pa.DataType:
        return pa.bool_()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return pa.array(stream.uniform(rows) < self.true)


def _round(values: Any, decimals: int | None) -> pa.Array:
    return pa.array(values if decimals is None else np.round(values, decimals))

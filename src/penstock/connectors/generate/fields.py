"""What a generated column can be: one small model each, all vectorised over row numbers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field, model_validator

from penstock.connectors.generate.numbers import Boolean, Integer, Normal, Number, Sequence
from penstock.connectors.generate.spec import Spec
from penstock.connectors.generate.texts import Name, Sentence, Uuid, Word
from penstock.sdk import Duration
from penstock.sdk.kit.clock import Clock, Start
from penstock.sdk.kit.random import Integers, Stream
from penstock.sdk.kit.rows import column, infer_rows

UTC = pa.timestamp("us", tz="UTC")


class Choice(Spec):
    """One of some values."""

    type: Literal["choice"]
    """One of the values listed."""
    of: list[Any] = Field(min_length=1)
    """The values."""
    weights: list[float] | None = None
    """How likely each is, in the order of the values; all alike if left out."""

    @model_validator(mode="after")
    def _weighted(self) -> Choice:
        weights = self.weights
        if weights is not None and (
            len(weights) != len(self.of) or min(weights) < 0 or not sum(weights) > 0
        ):
            raise ValueError("weights must be as many as the values of the choice, none negative")
        return self

    def kind(self) -> pa.DataType:
        return infer_rows([{"of": value} for value in self.of]).field("of").type

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        if self.weights is None:
            picked = stream.integers(rows, 0, len(self.of) - 1)
        else:
            bounds = np.cumsum(self.weights) / sum(self.weights)
            picked = np.searchsorted(bounds[:-1], stream.uniform(rows), side="right")
        return column(self.of, pa.field("of", self.kind())).take(pa.array(picked))


class Constant(Spec):
    """The same value in every row."""

    type: Literal["constant"]
    """The same value in every row."""
    value: Any
    """The value."""

    def kind(self) -> pa.DataType:
        return infer_rows([{"value": self.value}]).field("value").type

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        value = column([self.value], pa.field("value", self.kind()))
        return pa.repeat(value[0], len(rows))


class Timestamp(Spec):
    """Times that step from row to row."""

    type: Literal["timestamp"]
    """Times, one step after the other."""
    start: Start = "now"
    """The time of the first row; `now` is the time when rows are due, as a clock on the wall."""
    step: Duration | None = None
    """The time between two rows; as the rate says if left out, or one second."""
    jitter: Duration = 0.0
    """Take up to this much off each time, so that rows are not quite in order."""

    def kind(self) -> pa.DataType:
        return UTC

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        due = clock.told(self.start, self.step).at(rows)
        if self.jitter:
            due = due - stream.integers(rows, 0, round(self.jitter * 1e6))
        return pa.array(due, UTC)


class Struct(Spec):
    """Columns within a column."""

    type: Literal["struct"]
    """A nested record."""
    fields: dict[str, FieldSpec] = Field(min_length=1)
    """Its fields."""

    def kind(self) -> pa.DataType:
        return pa.struct([(name, spec.kind()) for name, spec in self.fields.items()])

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        columns = [s.column(rows, stream.child(name), clock) for name, s in self.fields.items()]
        return pa.StructArray.from_arrays(columns, fields=list(self.kind()))


class List(Spec):
    """Several values of one kind."""

    type: Literal["list"]
    """A list of values."""
    of: FieldSpec
    """What it holds."""
    min: int = Field(default=0, ge=0)
    """The fewest values."""
    max: int = Field(default=3, ge=0, le=10_000)
    """The most values."""

    @model_validator(mode="after")
    def _ordered(self) -> List:
        if self.min > self.max:
            raise ValueError("min must not be larger than max")
        return self

    def kind(self) -> pa.DataType:
        return pa.list_(self.of.kind())

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        count = stream.child("count").integers(rows, self.min, self.max)
        ends = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        within = np.arange(ends[-1]) - np.repeat(ends[:-1], count)
        inner = np.repeat(rows, count) * max(self.max, 1) + within
        values = self.of.column(inner.astype(np.int64), stream.child("of"), clock)
        return pa.ListArray.from_arrays(pa.array(ends), values, type=self.kind())


def _named(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


FieldSpec = Annotated[
    Annotated[
        Sequence
        | Integer
        | Number
        | Normal
        | Boolean
        | Choice
        | Constant
        | Timestamp
        | Uuid
        | Word
        | Name
        | Sentence
        | Struct
        | List,
        Field(discriminator="type"),
    ],
    BeforeValidator(_named),
]
"""One of them by its `type`; a bare type name stands for the type with its defaults."""

Struct.model_rebuild()
List.model_rebuild()

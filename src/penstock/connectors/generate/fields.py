"""What a generated column can be: one small model each, all vectorised over row numbers."""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, Field, model_validator

from penstock.connectors.generate.random import Integers, Stream
from penstock.connectors.generate.words import FIRST, LAST, NOUNS
from penstock.sdk import Config, Duration
from penstock.sdk.kit.rows import column, infer_rows

UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Clock:
    """When row `row` was due, and how many microseconds lie between rows."""

    row: int = 0
    time: int = 0
    step: float = 1_000_000.0

    def at(self, rows: Integers) -> Integers:
        """The time of each row in microseconds since 1970."""
        due: Integers = self.time + ((rows - self.row) * self.step).astype(np.int64)
        return due


class Spec(Config):
    """Base of all: the type of a column and its values for given row numbers."""

    nulls: float = Field(default=0, ge=0, le=1)
    """The share of values that are null."""

    @abstractmethod
    def kind(self) -> pa.DataType:
        """The type of the column."""

    @abstractmethod
    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        """The values of these rows."""

    def column(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        """The values of these rows, some of them null."""
        values = self.make(rows, stream, clock)
        if not self.nulls:
            return values
        dropped = pa.array(stream.child("nulls").uniform(rows) < self.nulls)
        return pc.if_else(dropped, pa.scalar(None, values.type), values)


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
    start: dt.datetime | Literal["now"] = "now"
    """The time of the first row; `now` is the time when rows are due, as a clock on the wall."""
    step: Duration | None = None
    """The time between two rows; as the rate says if left out, or one second."""
    jitter: Duration = 0.0
    """Take up to this much off each time, so that rows are not quite in order."""

    def kind(self) -> pa.DataType:
        return UTC

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        step = clock.step if self.step is None else self.step * 1e6
        row, time = clock.row, clock.time
        if isinstance(self.start, dt.datetime):
            zoned = self.start if self.start.tzinfo else self.start.replace(tzinfo=dt.UTC)
            row, time = 0, round(zoned.timestamp() * 1e6)
        due = Clock(row, time, step).at(rows)
        if self.jitter:
            due = due - stream.integers(rows, 0, round(self.jitter * 1e6))
        return pa.array(due, UTC)


class Uuid(Spec):
    """Random UUIDs."""

    type: Literal["uuid"]
    """A random UUID (version 4) as text."""

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        raw = np.empty((len(rows), 16), np.uint8)
        raw[:, :8] = stream.words(rows).view(np.uint8).reshape(-1, 8)
        raw[:, 8:] = stream.child("low").words(rows).view(np.uint8).reshape(-1, 8)
        raw[:, 6] = raw[:, 6] & 0x0F | 0x40
        raw[:, 8] = raw[:, 8] & 0x3F | 0x80
        text = np.full((len(rows), 36), ord("-"), np.uint8)
        text[:, _HEX_PLACES] = _HEX[raw].reshape(-1, 32)
        ends = np.arange(len(rows) + 1, dtype=np.int32) * 36
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), len(rows), buffers)


_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8)
_HEX = _HEX.reshape(256, 2)
_HEX_PLACES = [at for at in range(36) if at not in (8, 13, 18, 23)]


class Word(Spec):
    """A plain English noun."""

    type: Literal["word"]
    """A word."""

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return _pick(NOUNS, rows, stream)


class Name(Spec):
    """A person's name."""

    type: Literal["name"]
    """A first and a last name."""

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        first, last = _pick(FIRST, rows, stream), _pick(LAST, rows, stream.child("last"))
        return pc.binary_join_element_wise(first, last, " ")


class Sentence(Spec):
    """Several words."""

    type: Literal["sentence"]
    """Words with spaces between them."""
    min: int = Field(default=3, ge=1)
    """The fewest words."""
    max: int = Field(default=8, ge=1, le=1000)
    """The most words."""

    @model_validator(mode="after")
    def _ordered(self) -> Sentence:
        if self.min > self.max:
            raise ValueError("min must not be larger than max")
        return self

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        count = stream.child("count").integers(rows, self.min, self.max)
        words = [_pick(NOUNS, rows, stream.child(k)) for k in range(self.max)]
        kept = [
            word if k < self.min else pc.if_else(pa.array(count > k), word, None)
            for k, word in enumerate(words)
        ]
        return pc.binary_join_element_wise(*kept, " ", null_handling="skip")


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
"""One of the above by its `type`; a bare type name stands for the type with its defaults."""

Struct.model_rebuild()
List.model_rebuild()


def _rounded(values: Any, decimals: int | None) -> pa.Array:
    return pa.array(values if decimals is None else np.round(values, decimals))


def _pick(words: list[str], rows: Integers, stream: Stream) -> pa.Array:
    return pa.array(words).take(pa.array(stream.integers(rows, 0, len(words) - 1)))

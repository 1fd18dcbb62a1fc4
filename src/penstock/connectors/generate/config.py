"""Options of the generate source: field types, and the columns that use them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from penstock.connectors.generate.numbers import (
    Boolean,
    FieldType,
    Integer,
    Normal,
    Number,
    Sequence,
)
from penstock.connectors.generate.texts import Name, Sentence, Uuid, Word
from penstock.sdk import Duration
from penstock.sdk.columns.rows import column, infer_rows
from penstock.sdk.synthetic.clock import Clock, StartTime
from penstock.sdk.synthetic.random import Integers, Stream
from penstock.sdk.synthetic.source import SyntheticConfig

UTC = pa.timestamp("us", tz="UTC")


class Choice(FieldType):
    """Random choices."""

    type: Literal["choice"]
    """A random value of a list."""
    of: list[Any] = Field(min_length=1)
    """The values."""
    weights: list[float] | None = None
    """The relative frequency of each value. Equal by default."""

    @model_validator(mode="after")
    def _check_weights(self) -> Choice:
        weights = self.weights
        if weights is not None and (
            len(weights) != len(self.of) or min(weights) < 0 or not sum(weights) > 0
        ):
            raise ValueError("expected one weight for each value, not negative and not all zero")
        return self

    def kind(self) -> pa.DataType:
        return infer_rows([{"of": value} for value in self.of]).field("of").type

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        if self.weights is None:
            index = stream.integers(rows, 0, len(self.of) - 1)
        else:
            bounds = np.cumsum(self.weights) / sum(self.weights)
            index = np.searchsorted(bounds[:-1], stream.uniform(rows), side="right")
        return column(self.of, pa.field("of", self.kind())).take(pa.array(index))


class Constant(FieldType):
    """The same value in all rows."""

    type: Literal["constant"]
    """The same value in all rows."""
    value: Any
    """The value."""

    def kind(self) -> pa.DataType:
        return infer_rows([{"value": self.value}]).field("value").type

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        value = column([self.value], pa.field("value", self.kind()))
        return pa.repeat(value[0], len(rows))


class Timestamp(FieldType):
    """Consecutive times."""

    type: Literal["timestamp"]
    """Times at equal intervals."""
    start_time: StartTime = "now"
    """The time of the first row; `now` means the wall clock time at which rows are due."""
    step: Duration | None = None
    """The time between two rows. By default that of `rate`, or one second."""
    jitter: Duration = 0.0
    """The maximum random delay that is subtracted from each time, for out-of-order rows."""

    def kind(self) -> pa.DataType:
        return UTC

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        due = clock.with_options(self.start_time, self.step).at(rows)
        if self.jitter:
            due = due - stream.integers(rows, 0, round(self.jitter * 1e6))
        return pa.array(due, UTC)


class Struct(FieldType):
    """Nested records."""

    type: Literal["struct"]
    """A nested record."""
    fields: dict[str, FieldSpec] = Field(min_length=1)
    """The fields of the record."""

    def kind(self) -> pa.DataType:
        return pa.struct([(name, spec.kind()) for name, spec in self.fields.items()])

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        columns = [
            spec.column(rows, stream.child(name), clock) for name, spec in self.fields.items()
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self.kind()))


class List(FieldType):
    """Lists of values."""

    type: Literal["list"]
    """A list of values."""
    of: FieldSpec
    """The type of the elements."""
    min: int = Field(default=0, ge=0)
    """The minimum number of elements."""
    max: int = Field(default=3, ge=0, le=10_000)
    """The maximum number of elements."""

    @model_validator(mode="after")
    def _check_bounds(self) -> List:
        if self.min > self.max:
            raise ValueError("expected min to be at most max")
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


def _expand_type_name(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


class _TypeNames:
    """The JSON Schema of a field type: its name, if all its options have defaults, or a map."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        names = [name for kind in FIELD_TYPES for name in _names_alone(kind)]
        return {"anyOf": [{"enum": names}, handler(schema)]}


def _names_alone(kind: type[FieldType]) -> tuple[str, ...]:
    """Returns the values of `type` of a field type without other required options."""
    fields = {name: field for name, field in kind.model_fields.items() if name != "type"}
    if any(field.is_required() for field in fields.values()):
        return ()
    return get_args(kind.model_fields["type"].annotation)


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
    BeforeValidator(_expand_type_name),
    _TypeNames(),
]
"""A field type with its options. A type name alone stands for the defaults."""

FIELD_TYPES: tuple[type[FieldType], ...] = (
    Sequence, Integer, Number, Normal, Boolean, Choice, Constant, Timestamp, Uuid, Word, Name,
    Sentence, Struct, List,
)  # fmt: skip

Struct.model_rebuild()
List.model_rebuild()


class GenerateSourceConfig(SyntheticConfig):
    fields: dict[str, FieldSpec] = {}
    """The columns, each a type name (`sequence`, `uuid`, `name` ...) or a map with options."""
    sample: list[dict[str, Any]] = []
    """Rows that are repeated. `fields` adds columns or replaces columns of the sample."""
    seed: int = 0
    """The seed of the random numbers. The same seed generates the same rows."""

    @model_validator(mode="after")
    def _check_columns(self) -> GenerateSourceConfig:
        if not self.fields and not self.sample:
            raise ValueError("expected fields, sample, or both")
        return self

"""Field types of text."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from penstock.connectors.generate.numbers import FieldType
from penstock.connectors.generate.words import FIRST, LAST, NOUNS
from penstock.sdk.synthetic.clock import Clock
from penstock.sdk.synthetic.random import Integers, Stream


class Uuid(FieldType):
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
        text[:, _HEX_POSITIONS] = _HEX[raw].reshape(-1, 32)
        ends = np.arange(len(rows) + 1, dtype=np.int32) * 36
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), len(rows), buffers)


_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8)
_HEX = _HEX.reshape(256, 2)
_HEX_POSITIONS = [index for index in range(36) if index not in (8, 13, 18, 23)]


class Word(FieldType):
    """Random English nouns."""

    type: Literal["word"]
    """A random English noun."""

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        return _pick(NOUNS, rows, stream)


class Name(FieldType):
    """Random names of persons."""

    type: Literal["name"]
    """A random first and last name."""

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        first, last = _pick(FIRST, rows, stream), _pick(LAST, rows, stream.child("last"))
        return pc.binary_join_element_wise(first, last, " ")


class Sentence(FieldType):
    """Random words."""

    type: Literal["sentence"]
    """Random words separated by spaces."""
    min: int = Field(default=3, ge=1)
    """The minimum number of words."""
    max: int = Field(default=8, ge=1, le=1000)
    """The maximum number of words."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Sentence:
        if self.min > self.max:
            raise ValueError("expected min to be at most max")
        return self

    def kind(self) -> pa.DataType:
        return pa.string()

    def make(self, rows: Integers, stream: Stream, clock: Clock) -> pa.Array:
        count = stream.child("count").integers(rows, self.min, self.max)
        words = [_pick(NOUNS, rows, stream.child(index)) for index in range(self.max)]
        parts = [
            word if index < self.min else pc.if_else(pa.array(count > index), word, None)
            for index, word in enumerate(words)
        ]
        return pc.binary_join_element_wise(*parts, " ", null_handling="skip")


def _pick(words: list[str], rows: Integers, stream: Stream) -> pa.Array:
    return pa.array(words).take(pa.array(stream.integers(rows, 0, len(words) - 1)))

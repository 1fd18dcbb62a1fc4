"""Columns of text."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from penstock.connectors.generate.spec import Spec
from penstock.connectors.generate.words import FIRST, LAST, NOUNS
from penstock.sdk.kit.clock import Clock
from penstock.sdk.kit.random import Integers, Stream


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


def _pick(words: list[str], rows: Integers, stream: Stream) -> pa.Array:
    return pa.array(words).take(pa.array(stream.integers(rows, 0, len(words) - 1)))

"""What a generated column is: a type, and values that follow from row numbers."""

from __future__ import annotations

from abc import abstractmethod

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from penstock.sdk import Config
from penstock.sdk.kit.clock import Clock
from penstock.sdk.kit.random import Integers, Stream


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

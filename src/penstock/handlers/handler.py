"""The interface of handlers, and the handler that applies several handlers in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.rows import time_values
from penstock.handlers.state import State, decode, encode

Batches = list[pa.RecordBatch]
NULL_TIME = "the time is null"


@dataclass(frozen=True)
class Dropped:
    """Rows that a handler has left out, with the reason and its error code."""

    rows: pa.RecordBatch
    reason: str
    code: str


class Handler(ABC):
    """A function from record batches to record batches.

    The constructor takes the options and raises HandlerError. The output of a handler with state
    depends on earlier batches, and its state can be stored.
    """

    makes_batches: bool = False
    """Whether each output batch is a batch of its own for the next handlers, as a window is."""
    by_row: bool = False
    """Whether the output for a row depends on this row alone."""
    rows_of_batches: bool = False
    """Whether the output has a row for each batch, so several batches are handled at once."""
    joins_each: bool = False
    """Whether `handle_each` handles several batches at once."""
    fails_by_row: bool = False
    """Whether an error of a batch is that of some of its rows, and leaves the state as it was."""

    def __init__(self) -> None:
        self.dropped: list[Dropped] = []
        """The rows that were left out, until `take_dropped`."""

    @abstractmethod
    def handle(self, batch: pa.RecordBatch) -> Batches:
        """Returns the output of one batch. Raises HandlerError."""

    def handle_all(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        """Returns the output of the batches of one call. An error discards the whole output."""
        return [output for batch in batches for output in self.handle(batch)]

    def handle_each(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        """Returns the output of each batch, as if it were alone in its call."""
        return [output for batch in batches for output in self.handle_all([batch])]

    def finish(self) -> Batches:
        """Returns the output of the rows that wait. No rows follow."""
        return []

    def drop_null_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows with a time. Raises HandlerError without a time column."""
        times = time_values(batch)
        if not times.null_count:
            return batch
        nulls = times.is_null()
        self.dropped.append(Dropped(batch.filter(nulls), NULL_TIME, code="null-time"))
        return batch.filter(pc.invert(nulls))

    def state(self) -> State:
        """Returns the state; nothing for a handler without state."""
        return {}

    def restore(self, state: State) -> None:
        """Replaces the state by one that `state` has returned."""
        assert not state

    def save(self) -> bytes:
        """Returns the state as bytes."""
        return encode(self.state())

    def load(self, state: bytes) -> None:
        """Replaces the state by one that `save` has returned."""
        self.restore(decode(state))

    def take_dropped(self) -> list[Dropped]:
        """Returns the rows that were left out since the last call."""
        dropped, self.dropped = self.dropped, []
        return dropped


class Chain(Handler):
    """Handlers, each of which receives all output batches of the one before."""

    def __init__(self, handlers: Sequence[Handler]) -> None:
        super().__init__()
        self._handlers = handlers

    def state(self) -> State:
        return {"states": [each.state() for each in self._handlers]}

    def restore(self, state: State) -> None:
        for handler, each in zip(self._handlers, state["states"], strict=True):
            handler.restore(each)

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return self.handle_all([batch])

    def handle_all(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        outputs = list(batches)
        for handler in self._handlers:
            outputs = handler.handle_all(outputs)
            self.dropped += handler.take_dropped()
        return outputs

"""Handlers over a stream of rows, whose division into calls changes no result.

A batch is a run of rows with equal values of the `batch` columns. It passes the handlers once a row
of the next batch arrives. Without `batch` columns rows have no batches before the first window, and
pass the handlers as they arrive. Each window is a batch of its own.

State: the state of each handler, and the rows of the last batch. A row on which a handler fails is
dropped with the error as the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Dropped, Handler
from penstock.handlers.metadata import TIME_COLUMN, schema_value
from penstock.handlers.rows import aligned, changed_rows, column, concatenate, is_ordered
from penstock.handlers.state import State

FAILED = "handler-failed"
"""The code of rows on which a handler fails."""


class Stages(Handler):
    """Applies handlers in order to complete batches, to each one on its own."""

    def __init__(self, handlers: Sequence[Handler]) -> None:
        super().__init__()
        self._handlers = handlers

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return self.handle_all([batch])

    def handle_all(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        return self._each(batches, 0)

    def _each(self, batches: Sequence[pa.RecordBatch], first: int) -> Batches:
        """Returns the output of the handlers from `first` on, for each batch on its own."""
        rest = self._handlers[first:]
        if rest and rest[0].rows_of_batches and all(each.by_row for each in rest[1:]):
            return self._through([*batches], first)
        if rest and rest[0].joins_each:
            outputs = rest[0].handle_each(batches)
            self.dropped += rest[0].take_dropped()
            return self._each(outputs, first + 1)
        return [output for batch in batches for output in self._through([batch], first)]

    def _through(self, batches: Batches, first: int) -> Batches:
        """Returns the output of the handlers from `first` on."""
        for index, handler in enumerate(self._handlers[first:], first):
            if handler.fails_by_row:
                batches = [each for batch in batches for each in self._by_row(handler, batch)]
            else:
                batches = handler.handle_all(batches)
                self.dropped += handler.take_dropped()
            if handler.makes_batches:
                return self._each(batches, index + 1)
        return batches

    def _by_row(self, handler: Handler, batch: pa.RecordBatch) -> Batches:
        """Returns the output for a batch without the rows on which a handler fails."""
        outputs = [*self._attempts(handler, batch)]
        return outputs if handler.makes_batches else concatenate(outputs)

    def _attempts(self, handler: Handler, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        try:
            outputs = handler.handle(batch)
        except (HandlerError, pa.ArrowException) as error:
            handler.take_dropped()
            if batch.num_rows > 1:
                half = batch.num_rows // 2
                yield from self._attempts(handler, batch.slice(0, half))
                yield from self._attempts(handler, batch.slice(half))
                return
            message = error.message if isinstance(error, HandlerError) else str(error)
            self.dropped.append(Dropped(batch, message, code=FAILED))
            outputs = handler.handle(batch.slice(0, 0))
        self.dropped += handler.take_dropped()
        yield from outputs


class Stream(Stages):
    """Applies handlers in order to the rows of a stream."""

    def __init__(self, handlers: Sequence[Handler], batch: Sequence[str] = ()) -> None:
        super().__init__(handlers)
        self._batch = batch
        self._last: pa.RecordBatch | None = None

    def state(self) -> State:
        return {"states": [each.state() for each in self._handlers], "last": self._last}

    def restore(self, state: State) -> None:
        self._last = state["last"]
        for handler, each in zip(self._handlers, state["states"], strict=True):
            handler.restore(each)

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return self._each(self._complete(batch) if self._batch else _in_order(batch), 0)

    def handle_all(self, batches: Sequence[pa.RecordBatch]) -> Batches:
        return [output for batch in batches for output in self.handle(batch)]

    def finish(self) -> Batches:
        last, self._last = self._last, None
        outputs = [] if last is None else self._each([last], 0)
        for index, handler in enumerate(self._handlers, 1):
            waiting = handler.finish()
            self.dropped += handler.take_dropped()
            outputs += self._each(waiting, index)
        return outputs

    def _complete(self, rows: pa.RecordBatch) -> Batches:
        """Returns the batches that are complete, and keeps the last one."""
        if not rows.num_rows:
            return []
        last = [] if self._last is None else [aligned(self._last, rows.schema)]
        (joined,) = concatenate([*last, rows])
        starts = [0, *changed_rows(joined, self._batch)]
        self._last = joined.slice(starts[-1])
        return [joined.slice(start, end - start) for start, end in pairwise(starts)]


def _in_order(rows: pa.RecordBatch) -> Batches:
    """Returns the longest runs of rows whose times do not fall, which handlers may sort."""
    name = schema_value(rows.schema, TIME_COLUMN)
    times = None if name is None else column(rows, name)
    if times is None or not rows.num_rows or is_ordered(times):
        return [rows]
    known = pc.fill_null_forward(times.cast(pa.int64())).fill_null(-(2**63))
    ticks = known.to_numpy(zero_copy_only=False)
    starts = [0, *(np.flatnonzero(ticks[1:] < ticks[:-1]) + 1).tolist(), len(ticks)]
    return [rows.slice(start, end - start) for start, end in pairwise(starts)]

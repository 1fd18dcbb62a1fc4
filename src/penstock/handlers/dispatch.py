"""The handler `dispatch`: a handler of its own for each group.

Input and output: those of the handler. Batches without a group share one handler. State: the state
of the handler of each group. Errors: those of the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.handlers.group import GroupBy
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import group_key
from penstock.handlers.state import State


class Dispatch(Handler):
    """Passes each batch to the handler of its group, which `create` returns at its first batch."""

    def __init__(self, create: Callable[[], Handler]) -> None:
        super().__init__()
        self._create = create
        self._handlers: dict[str, Handler] = {}
        handler = create()
        self.makes_batches, self.fails_by_row = handler.makes_batches, handler.fails_by_row

    def state(self) -> State:
        return {"groups": [[group, each.state()] for group, each in self._handlers.items()]}

    def restore(self, state: State) -> None:
        self._handlers = {group: self._restored(each) for group, each in state["groups"]}

    def _restored(self, state: State) -> Handler:
        handler = self._create()
        handler.restore(state)
        return handler

    def handle(self, batch: pa.RecordBatch) -> Batches:
        return self.of_group(batch)

    def finish(self) -> Batches:
        return [output for key in [*self._handlers] for output in self.end(key)]

    def end(self, key: str) -> Batches:
        """Removes the handler of a group. Returns the output of its rows that wait."""
        handler = self._handlers.pop(key)
        output = handler.finish()
        self.dropped += handler.take_dropped()
        return output

    def of_group(self, batch: pa.RecordBatch) -> Batches:
        """Returns the output of the rows of one group."""
        key = group_key(batch.schema)
        if key not in self._handlers:
            self._handlers[key] = self._create()
        handler = self._handlers[key]
        output = handler.handle(batch)
        self.dropped += handler.take_dropped()
        return output


class ByGroup(Dispatch):
    """Divides each batch by the values of columns, with a handler for each group."""

    def __init__(self, by: Sequence[str], create: Callable[[], Handler]) -> None:
        super().__init__(create)
        self._groups = GroupBy(by)

    def handle(self, batch: pa.RecordBatch) -> Batches:
        groups = self._groups.handle(batch)
        return [output for group in groups for output in self.of_group(group)]

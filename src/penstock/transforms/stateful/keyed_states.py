"""States by key in plain Python: calls for rows and timers, and their failures.

The result does not depend on the division of rows into batches: a timer fires before the first row
of its key at or after its time, or once the watermark has reached it. A state expires likewise.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.core.exits import exception_text
from penstock.transforms.stateful.calls import Calls
from penstock.transforms.stateful.key_state import KeyState, to_datetime

FOREVER = 2**62
"""A time after all timers."""
Key = tuple[Any, ...]


class Failed(NamedTuple):
    """The rows, or the key and the timer, of a call that has failed."""

    rows: pa.RecordBatch
    reason: str


@dataclass
class _Entry:
    """The stored state of a key. `last` is its latest time."""

    key: Mapping[str, Any]
    value: bytes
    timers: dict[str, int] = field(default_factory=dict)
    last: int = -FOREVER
    live: Any = None
    """The value as an object, if it is loaded."""
    is_loaded: bool = False

    def load(self) -> Any:
        """Returns the value. Calls change it in place."""
        if not self.is_loaded:
            self.live, self.is_loaded = pickle.loads(self.value), True
        return self.live

    def next_timer(self) -> tuple[int, str] | None:
        """Returns the time and the name of the next timer."""
        return min(((time, name) for name, time in self.timers.items()), default=None)


_NOTHING = pickle.dumps(None)


class KeyedStates:
    """The states of keys, and the calls that change them.

    `time` is the column of event times; None for times of the clock. `ttl` is in microseconds.
    """

    def __init__(
        self, calls: Calls, key: Sequence[str], time: str | None = None, ttl: int | None = None
    ) -> None:
        self._calls, self._key, self._time, self._ttl = calls, tuple(key), time, ttl
        self._entries: dict[Key, _Entry] = {}

    def process(self, rows: pa.RecordBatch, now: int) -> Iterator[pa.RecordBatch | Failed]:
        """Yields the output for rows in their order. `now` is the time of the clock."""
        keys = [rows.column(rows.schema.get_field_index(name)).to_pylist() for name in self._key]
        times = self._times(rows, now)
        timed = [index for index, time in enumerate(times) if time is not None]
        for index in {*range(rows.num_rows)} - {*timed}:
            yield Failed(rows.slice(index, 1), "the event time is null")
        values = list(zip(*keys, strict=True))
        for part in self._calls.parts([_identity(values[index]) for index in timed]):
            indexes = [timed[each] for each in part]
            key, part_times = _identity(values[indexes[0]]), [times[index] for index in indexes]
            yield from self._due(key, min(part_times))
            named = dict(zip(self._key, values[indexes[0]], strict=True))
            entry = self._entries.setdefault(key, _Entry(named, _NOTHING))
            call, time = self._calls.of_rows(rows, indexes), max(part_times)
            of_call = rows.take(pa.array(indexes, pa.int64()))
            yield from self._call(entry, call, time, of_call, is_use=True)
            self._drop_empty(key)

    def advance(self, now: int) -> Iterator[pa.RecordBatch | Failed]:
        """Yields the output of the timers up to a time, and removes expired states."""
        due = [(self._next(entry), repr(key), key) for key, entry in self._entries.items()]
        for time, _, key in sorted(due, key=lambda each: each[:2]):
            if time <= now:
                yield from self._due(key, now)

    def next_time(self) -> int | None:
        """Returns the time of the next timer or expiry."""
        time = min(map(self._next, self._entries.values()), default=FOREVER)
        return None if time >= FOREVER else time

    def save(self) -> bytes:
        """Returns all states as bytes."""
        entries = self._entries.values()
        return pickle.dumps([(dict(e.key), e.value, e.timers, e.last) for e in entries])

    def restore(self, data: bytes) -> None:
        """Sets the states to those of `save`."""
        entries = [_Entry(*parts) for parts in pickle.loads(data)]
        self._entries = {_identity(tuple(each.key.values())): each for each in entries}

    def snapshot(self) -> list[tuple[dict[str, Any], Any, dict[str, Any]]]:
        """Returns the key, the value and the timers of each state."""
        return [
            (dict(e.key), pickle.loads(e.value), {n: to_datetime(t) for n, t in e.timers.items()})
            for e in self._entries.values()
        ]

    def _times(self, rows: pa.RecordBatch, now: int) -> list[Any]:
        if self._time is None:
            return [now] * rows.num_rows
        column = rows.column(rows.schema.get_field_index(self._time))
        return list(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist())

    def _next(self, entry: _Entry) -> int:
        """Returns the time of the next timer or of the expiry of a state."""
        timer = entry.next_timer()
        return min(timer[0] if timer else FOREVER, self._expiry(entry))

    def _expiry(self, entry: _Entry) -> int:
        return FOREVER if self._ttl is None else entry.last + self._ttl

    def _due(self, key: Key, until: int) -> Iterator[pa.RecordBatch | Failed]:
        """Fires the timers of a key up to a time in their order, and removes an expired state."""
        while (entry := self._entries.get(key)) is not None:
            timer, expiry = entry.next_timer(), self._expiry(entry)
            if timer is not None and timer[0] <= min(until, expiry):
                time, name = timer
                del entry.timers[name]
                row = {**entry.key, "timer": name, "time": to_datetime(time)}
                of_call = pa.RecordBatch.from_pylist([row])
                yield from self._call(entry, self._calls.of_timer(name), time, of_call)
                self._drop_empty(key)
            elif expiry <= until:
                del self._entries[key]
            else:
                return

    def _call(
        self, entry: _Entry, call: Callable[[KeyState], list[pa.RecordBatch]], time: int,
        rows: pa.RecordBatch, *, is_use: bool = False,
    ) -> Iterator[pa.RecordBatch | Failed]:  # fmt: skip
        """Yields the output of a call. After an exception the state is that before the call.

        `is_use` calls extend the life of the state. `rows` are those of the call.
        """
        state = KeyState(entry.key, entry.load(), entry.timers, time, self._calls.has_on_timer)
        try:
            output = call(state)
            value = pickle.dumps(state.value)
        except Exception as error:
            entry.live, entry.is_loaded = None, False
            yield Failed(rows, exception_text(error))
            return
        entry.last = max(entry.last, time) if is_use else entry.last
        entry.value, entry.live, entry.timers = value, state.value, state.stored_timers()
        yield from output

    def _drop_empty(self, key: Key) -> None:
        entry = self._entries.get(key)
        if entry is not None and entry.value == _NOTHING and not entry.timers:
            del self._entries[key]


def _identity(key: Key) -> Key:
    """Returns a key whose equal values are equal in Python: NaN, and zero without its sign."""
    return tuple(
        "NaN" if isinstance(each, float) and each != each else each + 0.0 if each == 0 else each
        for each in key
    )

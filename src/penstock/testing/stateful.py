"""Tests of Python functions with state, without Spark and without files."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from penstock.core.units import seconds
from penstock.sdk.columns.ddl import arrow_schema
from penstock.transforms.stateful.calls import Calls
from penstock.transforms.stateful.key_state import to_microseconds
from penstock.transforms.stateful.keyed_states import Failed, KeyedStates


class FailedCall(NamedTuple):
    """A row, or the key and the timer, of a call that has failed."""

    row: dict[str, Any]
    reason: str


class StatefulHarness:
    """A function or class with state, whose rows and times a test controls.

    The options are those of a transform of type `python`: `schema` are the columns of the output,
    and `input` those of the rows, by default those of their values. `errors` has the failed rows
    with their reasons.
    """

    def __init__(
        self, target: Any, *, schema: str | Mapping[str, str], key: str | Sequence[str],
        time: str | None = None, ttl: str | float | None = None, input: str | None = None,
        per: Literal["row", "batch"] = "batch", options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._instance = target(**(options or {})) if inspect.isclass(target) else target
        if hasattr(self._instance, "open"):
            self._instance.open()
        self._columns = arrow_schema(schema if isinstance(schema, str) else dict(schema))
        self._input = None if input is None else arrow_schema(input)
        self._key = [key] if isinstance(key, str) else [*key]
        self._time, self._ttl = time, None if ttl is None else round(seconds(ttl) * 1_000_000)
        self._by_row = per == "row"
        self._states = self._create()
        self._now: int | None = None
        self.errors: list[FailedCall] = []

    def feed(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Processes rows as one batch. Returns the rows of the output."""
        if not rows:
            return []
        batch = pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=self._input)
        return self._rows(self._states.process(batch, self._clock()))

    def advance(self, to: datetime) -> list[dict[str, Any]]:
        """Sets the watermark, or the clock without `time`. Returns the output of timers."""
        self._now = to_microseconds(to)
        return self._rows(self._states.advance(self._now))

    def restart(self) -> None:
        """Stores and restores all states, as the end and the start of a process do."""
        data = self._states.save()
        self._states = self._create()
        self._states.restore(data)

    def value(self, *key: Any) -> Any:
        """Returns the value of the state of a key; None without a state."""
        return self._find(key)[0]

    def timers(self, *key: Any) -> dict[str, datetime]:
        """Returns the timers of a key by name."""
        timers: dict[str, datetime] = self._find(key)[1]
        return timers

    def _create(self) -> KeyedStates:
        calls = Calls(self._instance, self._columns, by_row=self._by_row)
        return KeyedStates(calls, self._key, self._time, self._ttl)

    def _find(self, key: tuple[Any, ...]) -> tuple[Any, Any]:
        for names, value, timers in self._states.snapshot():
            if tuple(names.values()) == key:
                return value, timers
        return None, {}

    def _clock(self) -> int:
        return time.time_ns() // 1000 if self._now is None else self._now

    def _rows(self, results: Iterator[pa.RecordBatch | Failed]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for result in results:
            if isinstance(result, Failed):
                found = result.rows.to_pylist()
                self.errors += [FailedCall(row, result.reason) for row in found]
            else:
                rows += result.to_pylist()
        return rows

"""Cache of the rows that were looked up by key, in the process of a task."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

Key = tuple[Any, ...]
_BYTES_OF_ENTRY = 200
"""The approximate size of a key and its entry in memory."""


class _Entry(NamedTuple):
    """The place of the row of a key, or None if there is none. `batch` is its first batch."""

    place: int | None
    batch: object
    time: float


class LookupCache:
    """The rows of keys, and the keys without a row, of at most `max_bytes`.

    A row is used for `ttl` seconds, and in the batch that has looked it up. So is the absence of a
    row, without `keeps_missing` only in its batch. The keys used least recently are removed.
    """

    def __init__(
        self, schema: pa.Schema, ttl: float, max_bytes: int, *, keeps_missing: bool = True
    ) -> None:
        self.rows = pa.RecordBatch.from_pylist([], schema)
        self._ttl, self._max_bytes, self._keeps_missing = ttl, max_bytes, keeps_missing
        self._entries: dict[Key, _Entry] = {}
        self._batch: object = None

    def begin(self, batch: object) -> None:
        """Begins a batch. Without a time to live, or without a batch, earlier rows are removed."""
        if batch is None or (self._ttl <= 0 and batch != self._batch):
            self.clear()
        self._batch = batch

    def clear(self) -> None:
        """Removes all rows."""
        self._entries.clear()
        self.rows = self.rows.slice(0, 0)

    def places(self, keys: Sequence[Key]) -> dict[Key, int | None]:
        """Returns the places in `rows` of the keys that the cache has, None without a row."""
        oldest = time.monotonic() - self._ttl
        found: dict[Key, int | None] = {}
        for key in keys:
            entry = self._entries.get(key)
            if entry is None:
                continue
            is_kept = entry.time > oldest and (entry.place is not None or self._keeps_missing)
            if is_kept or entry.batch == self._batch:
                self._entries[key] = self._entries.pop(key)
                found[key] = entry.place
        return found

    def add(self, rows: pa.RecordBatch, places: Mapping[Key, int | None]) -> None:
        """Adds rows, and keys with their places in these rows."""
        if not self._max_bytes:
            return
        count, now = self.rows.num_rows, time.monotonic()
        self.rows = pa.concat_batches([self.rows, rows])
        for key, place in places.items():
            self._entries.pop(key, None)
            self._entries[key] = _Entry(None if place is None else count + place, self._batch, now)
        if self._size() > self._max_bytes:
            self._shrink()

    def _size(self) -> int:
        return int(self.rows.nbytes) + _BYTES_OF_ENTRY * len(self._entries)

    def _shrink(self) -> None:
        """Removes the keys used least recently, and rows without a key, down to half the size."""
        while self._entries and self._size() > self._max_bytes // 2:
            kept = list(self._entries.items())[len(self._entries) // 2 + 1 :]
            places = [entry.place for _, entry in kept if entry.place is not None]
            numbers = dict(zip(places, range(len(places)), strict=True))
            self.rows = self.rows.take(pa.array(np.array(places, np.int64)))
            self._entries = {
                key: entry if entry.place is None else entry._replace(place=numbers[entry.place])
                for key, entry in kept
            }

"""Store of the history: a SQLite file of its own, written once for all pipelines of a sample."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from penstock.core.files.private_files import open_private
from penstock.server.history.levels import LEVELS, Value, bucket, level_for
from penstock.server.history.samples import (
    Sample,
    decode,
    decode_floats,
    encode,
    merge_samples,
)
from penstock.server.history.sampling import Baseline, Series

FILE = "history.db"
_TABLES = """
CREATE TABLE IF NOT EXISTS pipelines (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, baseline TEXT);
CREATE TABLE IF NOT EXISTS layouts (
    key INTEGER PRIMARY KEY, series TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS samples (
    pipeline INTEGER NOT NULL, level INTEGER NOT NULL, time INTEGER NOT NULL,
    layout INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (pipeline, level, time)) WITHOUT ROWID;
"""
Layout = tuple[Series, ...]
Wanted = Callable[[Series], bool]
Row = tuple[int, dict[Series, Value]]
"""The start of a step, and its sample."""


class HistoryStore:
    """The samples of all pipelines. Its methods may be called from any thread.

    A kill of the machine may lose the last minutes. Raises sqlite3.Error.
    """

    def __init__(self, path: Path) -> None:
        open_private(path, "a").close()
        self._connection = sqlite3.connect(path, check_same_thread=False, timeout=10)
        self._lock = threading.Lock()
        self._layouts: dict[int, Layout] = {}
        self._numbers: dict[Layout, int] = {}
        self._rolled = [0] * len(LEVELS)
        with self._transaction() as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.executescript(_TABLES)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def baselines(self) -> dict[str, Baseline]:
        """Returns the baseline of each pipeline, by ID."""
        with self._transaction() as database:
            rows = database.execute("SELECT id, baseline FROM pipelines WHERE baseline NOT NULL")
            return {id: _baseline(text) for id, text in rows}

    def add(
        self, time: float, samples: Mapping[str, Mapping[Series, float]],
        baselines: Mapping[str, Baseline],
    ) -> None:  # fmt: skip
        """Adds the samples of a time, and merges and removes those of the steps before."""
        start = bucket(time, LEVELS[0].step)
        with self._transaction() as database:
            for id, values in samples.items():
                key = _key(database, id)
                sample = {series: Value.of(value) for series, value in values.items()}
                earlier = self._rows(database, key, 0, start, start + 1)
                merged = merge_samples([*(row for _, row in earlier), sample])
                self._write(database, key, 0, start, merged)
                database.execute(
                    "UPDATE pipelines SET baseline = ? WHERE key = ?",
                    (_text(baselines[id]), key),
                )
            self._roll_up(database, time)

    def read(
        self, id: str, start: float, end: float, resolution: int, now: float,
        wanted: Wanted = lambda series: True,
    ) -> list[Row]:  # fmt: skip
        """Returns the samples of a pipeline from `start` to `end`, merged to a resolution.

        A step that is not over has the samples so far.
        """
        with self._transaction() as database:
            key = _find(database, id)
            if key is None:
                return []
            level = level_for(resolution, now - start)
            first, last = bucket(start, resolution), int(end) + 1
            rows = self._until_now(database, key, level, first, last, wanted)
        return _merge(rows, resolution)

    def minutes(self, series: Series, since: float) -> dict[str, list[tuple[int, float]]]:
        """Returns one series of all pipelines by minute, by their IDs."""
        found: dict[str, list[tuple[int, float]]] = {}
        with self._transaction() as database:
            keys = database.execute("SELECT key, id FROM pipelines").fetchall()
            for key, id in keys:
                rows = self._encoded(database, key, 1, int(since), 2**40)
                found[id] = [
                    (time, decode_floats(data)[layout.index(series)])
                    for time, layout, data in rows
                    if series in layout
                ]
        return found

    def keep_only(self, ids: Iterable[str]) -> None:
        """Removes the samples of all other pipelines, and layouts without samples."""
        known = set(ids)
        with self._transaction() as database:
            for key, id in database.execute("SELECT key, id FROM pipelines").fetchall():
                if id not in known:
                    database.execute("DELETE FROM samples WHERE pipeline = ?", (key,))
                    database.execute("DELETE FROM pipelines WHERE key = ?", (key,))
            database.execute(
                "DELETE FROM layouts WHERE key NOT IN (SELECT DISTINCT layout FROM samples)"
            )
            self._forget_layouts()

    def _forget_layouts(self) -> None:
        self._layouts.clear()
        self._numbers.clear()

    # Levels

    def _roll_up(self, database: sqlite3.Connection, time: float) -> None:
        """Merges the steps of each level that are over, then removes samples that are too old."""
        keys = [key for (key,) in database.execute("SELECT key FROM pipelines").fetchall()]
        for level in range(1, len(LEVELS)):
            end = bucket(time, LEVELS[level].step)
            if end == self._rolled[level]:
                return
            for key in keys:
                self._merge_level(database, key, level, end)
                for index in (level - 1, level):
                    database.execute(
                        "DELETE FROM samples WHERE pipeline = ? AND level = ? AND time < ?",
                        (key, index, int(time) - LEVELS[index].retention),
                    )
            self._rolled[level] = end

    def _until_now(
        self, database: sqlite3.Connection, key: int, level: int, start: int, end: int,
        wanted: Wanted,
    ) -> list[Row]:  # fmt: skip
        """Returns the samples of a level, and those of its last steps from the finer levels."""
        rows, step = self._rows(database, key, level, start, end, wanted), LEVELS[level].step
        if level == 0:
            return rows
        position = rows[-1][0] + step if rows else start
        finer = self._until_now(database, key, level - 1, position, end, wanted)
        return rows + _merge(finer, step)

    def _merge_level(self, database: sqlite3.Connection, key: int, level: int, end: int) -> None:
        step = LEVELS[level].step
        (last,) = database.execute(
            "SELECT max(time) FROM samples WHERE pipeline = ? AND level = ?", (key, level)
        ).fetchone()
        start = 0 if last is None else last + step
        finer = self._rows(database, key, level - 1, start, end)
        for time, sample in _merge(finer, step):
            self._write(database, key, level, time, sample)

    # Rows

    def _write(
        self, database: sqlite3.Connection, key: int, level: int, time: int, sample: Sample
    ) -> None:
        layout = tuple(sorted(sample))
        number = self._number_of(database, layout)
        database.execute(
            "INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, ?)",
            (key, level, time, number, encode(sample, layout)),
        )

    def _number_of(self, database: sqlite3.Connection, layout: Layout) -> int:
        if layout not in self._numbers:
            text = json.dumps(layout)
            database.execute("INSERT OR IGNORE INTO layouts (series) VALUES (?)", (text,))
            (self._numbers[layout],) = database.execute(
                "SELECT key FROM layouts WHERE series = ?", (text,)
            ).fetchone()
        return self._numbers[layout]

    def _rows(
        self, database: sqlite3.Connection, key: int, level: int, start: int, end: int,
        wanted: Wanted = lambda series: True,
    ) -> list[Row]:  # fmt: skip
        rows: list[Row] = []
        columns: list[tuple[int, Series]] = []
        known: Layout | None = None
        for time, layout, data in self._encoded(database, key, level, start, end):
            if layout is not known:
                columns = [each for each in enumerate(layout) if wanted(each[1])]
                known = layout
            rows.append((time, decode(data, columns)))
        return rows

    def _encoded(
        self, database: sqlite3.Connection, key: int, level: int, start: int, end: int
    ) -> list[tuple[int, Layout, bytes]]:
        rows = database.execute(
            "SELECT time, layout, data FROM samples WHERE pipeline = ? AND level = ? "
            "AND time >= ? AND time < ? ORDER BY time", (key, level, start, end),
        ).fetchall()  # fmt: skip
        return [(time, self._layout(database, layout), data) for time, layout, data in rows]

    def _layout(self, database: sqlite3.Connection, number: int) -> Layout:
        if number not in self._layouts:
            (text,) = database.execute(
                "SELECT series FROM layouts WHERE key = ?", (number,)
            ).fetchone()
            self._layouts[number] = tuple(Series(*each) for each in json.loads(text))
        return self._layouts[number]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                with self._connection as database:
                    yield database
            except BaseException:
                self._forget_layouts()  # those of this transaction are not stored
                raise


def _merge(rows: Iterable[Row], step: int) -> list[Row]:
    """Returns rows merged into longer steps."""
    steps = groupby(rows, lambda row: bucket(row[0], step))
    return [(time, merge_samples(sample for _, sample in each)) for time, each in steps]


def _find(database: sqlite3.Connection, id: str) -> int | None:
    row = database.execute("SELECT key FROM pipelines WHERE id = ?", (id,)).fetchone()
    return None if row is None else int(row[0])


def _key(database: sqlite3.Connection, id: str) -> int:
    database.execute("INSERT OR IGNORE INTO pipelines (id) VALUES (?)", (id,))
    key = _find(database, id)
    assert key is not None
    return key


def _text(baseline: Baseline) -> str:
    counters = [(*series, count) for series, count in baseline.counters.items()]
    return json.dumps({"began": baseline.began, "time": baseline.time, "counters": counters})


def _baseline(text: str) -> Baseline:
    content = json.loads(text)
    counters = {Series(*names): count for *names, count in content["counters"]}
    return Baseline(content["began"], content["time"], counters)

"""Random streams for windows: partitions out of order, late rows, ties, nulls, changes, restarts.

The watermark is computed here from the rule of docs/concepts.md, independently of Spark: after a
batch it is the latest event time less the delay, of several sources the lowest one, and the rows of
a batch are compared with the watermark of the batch before.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

SECOND = 1000
BEGIN = int(datetime(2025, 12, 31, 23, 59, tzinfo=UTC).timestamp()) * SECOND
"""A minute before the end of a day and a year."""
STEP = 20 * SECOND
"""Event time that passes from batch to batch."""
DELAYS = {"a": 5 * SECOND, "b": 12 * SECOND}


class Row(NamedTuple):
    """A row of a stream. `ts` is the event time in milliseconds."""

    id: int
    g: int
    k: str | None
    x: int | None
    ts: int | None


class Step(NamedTuple):
    """A batch of a query: its rows, the watermark, and that of the batch before."""

    rows: Mapping[str, Sequence[Row]]
    late: int
    watermark: int


@dataclass
class Streams:
    """The streams `a` and `b` and the changes `c`, in runs that begin with a restart.

    A batch has two files of each stream: partitions, of which the second one lags behind.
    """

    chance: random.Random
    sets: int
    batches: int
    runs: list[dict[str, list[list[Row]]]] = field(default_factory=list)
    changes: list[list[tuple[Row, str]]] = field(default_factory=list)
    table: dict[int, Row] = field(default_factory=dict)
    """The rows of `c` after all changes."""
    _ids: int = 0

    def __post_init__(self) -> None:
        restart = self.chance.randrange(1, self.batches)
        for first, last in ((0, restart), (restart, self.batches)):
            numbers = range(first, last)
            run = {name: [self._rows(number) for number in numbers] for name in DELAYS}
            if self.chance.random() < 0.5:
                run["b"] = [*run["b"], self._rows(last - 1)]
            self.runs.append(run)
            self.changes.append([self._change(number) for number in numbers for _ in range(30)])

    def _rows(self, number: int) -> list[Row]:
        return [self._row(number) for _ in range(9 * self.sets)]

    def _row(self, number: int) -> Row:
        chance = self.chance
        after = chance.choice((0, 0, 0, 0, -6, 10, -25, -60)) * SECOND
        time = BEGIN + 2 * STEP + number * STEP + after + chance.randrange(0, 2 * 20) * SECOND // 2
        self._ids += 1
        return Row(
            self._ids,
            chance.randrange(self.sets),
            chance.choice(("u", "u", "v", "w", None)),
            chance.choice((*range(10), None)),
            None if chance.random() < 0.04 else time,
        )

    def _change(self, number: int) -> tuple[Row, str]:
        row = self._row(number)._replace(id=self.chance.randrange(40))
        if self.chance.random() < 0.25:
            self.table.pop(row.id, None)
            return row, "d"
        operation = "u" if row.id in self.table else "i"
        self.table[row.id] = row
        return row, operation

    def write(self, directory: Path, number: int) -> None:
        """Writes the files of a run."""
        for name, batches in self.runs[number].items():
            for index, rows in enumerate(batches):
                middle = len(rows) // 2
                in_order = sorted(rows, key=lambda row: row.ts or 0)
                for part, half in enumerate((in_order[middle:], in_order[:middle])):
                    path = directory / name / f"{number}-{index}-{part}.jsonl"
                    _write(path, (_document(row) for row in half))
        lines = ({**_document(row), "op": operation} for row, operation in self.changes[number])
        _write(directory / "c" / f"{number}.jsonl", lines)

    def steps(self, names: Sequence[str]) -> Iterator[Step]:
        """Yields the batches of a query that reads some streams.

        A run that catches up ends with a batch without rows if the watermark has advanced. Of the
        changes `c`, which are never late, the rows after all changes are one batch.
        """
        if "c" in names:
            yield Step({"c": list(self.table.values())}, 0, 0)
            return
        late = watermark = 0
        latest = dict.fromkeys(names, 0)
        for run in self.runs:
            for index in range(max(len(run[name]) for name in names)):
                rows = {name: run[name][index] for name in names if index < len(run[name])}
                yield Step(rows, late, watermark)
                for name, found in rows.items():
                    times = [row.ts - DELAYS[name] for row in found if row.ts is not None]
                    latest[name] = max([latest[name], *times])
                late, watermark = watermark, max(watermark, *[min(latest.values())])
            yield Step({}, late, watermark)
            late = watermark


def _document(row: Row) -> dict[str, object]:
    time = None if row.ts is None else datetime.fromtimestamp(row.ts / SECOND, UTC).isoformat()
    return {**row._asdict(), "ts": time}


def _write(path: Path, documents: Iterator[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(document)}\n" for document in documents))


Key = tuple[object, ...]
Span = tuple[int, int]


def assign_sessions(
    steps: Sequence[Step], rows: Mapping[int, tuple[Key, int]], gap: int
) -> dict[int, Span]:
    """Returns the start and end of the session of each row, by the ID of the row.

    `rows` has the keys and times of the rows to assign. A session is written by the batch whose
    watermark has reached its end. Rows that follow in time begin another one.
    """
    found: dict[int, Span] = {}
    open_: dict[Key, list[tuple[int, int, list[int]]]] = {}
    for step in steps:
        for row in (row for each in step.rows.values() for row in each if row.id in rows):
            key, time = rows[row.id]
            if time + gap > step.late:
                open_.setdefault(key, []).append((time, time + gap, [row.id]))
        for key, spans in open_.items():
            open_[key] = []
            for start, end, ids in _merged(spans):
                found.update(dict.fromkeys(ids, (start, end)))
                if end > step.watermark:
                    open_[key].append((start, end, ids))
    return found


def _merged(spans: Sequence[tuple[int, int, list[int]]]) -> list[tuple[int, int, list[int]]]:
    merged: list[tuple[int, int, list[int]]] = []
    for start, end, ids in sorted(spans):
        if merged and start < merged[-1][1]:
            first, last, others = merged.pop()
            merged.append((first, max(last, end), [*others, *ids]))
        else:
            merged.append((start, end, ids))
    return merged

"""A directory with a pipeline, its generated input and its results as polars frames."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.connectors import memory
from penstock.core.errors import PenstockError
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.handle import RunHandle
from penstock.runtime.outcome import Outcome

Row = dict[str, Any]
START = datetime(2026, 3, 1, 10, tzinfo=UTC)
"""The earliest event time of generated rows."""


class Workspace:
    """Runs pipelines in a directory. Sinks of the type `memory` hold their results."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root, self._spark = root, spark
        self.counts: Row = {}
        self.file = "pipeline.yaml"
        self._started: list[RunHandle] = []
        memory.clear()

    def write(self, text: str) -> Path:
        """Writes the pipeline file."""
        path = self.root / self.file
        path.write_text(text)
        return path

    def start(self, text: str, **options: Any) -> RunHandle:
        """Starts a pipeline in the background."""
        given = RunOptions(**options)
        handle = app.start(self.write(text), spark=self._spark.newSession(), options=given)
        self._started.append(handle)
        return handle

    def close(self) -> None:
        """Stops the runs that a failed test leaves: they would slow all later tests down."""
        running = [handle for handle in self._started if handle.running]
        for handle in running:
            handle.stop()
        for handle in running:
            with suppress(PenstockError):
                handle.wait(60)

    def run(self, text: str, **options: Any) -> Outcome:
        """Runs a pipeline to its end, without errors. `counts` holds the metrics of its nodes."""
        handle = self.start(text, **options)
        outcome = handle.wait(600)
        assert outcome is not None and outcome.errors == {}, outcome
        self.counts = dict(handle.metrics.snapshot()["nodes"])
        return outcome

    def put(self, name: str, lines: Iterable[str], encoding: str = "utf-8") -> None:
        """Writes a file of lines, complete from the beginning for a pipeline that watches."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
        hidden.rename(path)

    def put_rows(self, name: str, rows: Sequence[Row], files: int = 3) -> None:
        """Divides rows among files of JSON lines in their order: `NAME/0.jsonl` and so on."""
        size = -(-len(rows) // files)
        for number in range(files):
            part = rows[number * size : (number + 1) * size]
            self.put(f"{name}/{number}.jsonl", map(dump, part))

    def await_rows(self, handle: RunHandle, name: str, count: int) -> None:
        """Waits until the table of a sink in memory has a number of rows."""
        until = time.monotonic() + 60
        while name not in memory.tables or memory.tables[name].num_rows < count:
            assert handle.wait(0.05) is None and time.monotonic() < until

    def result(self, name: str = "out") -> pl.DataFrame:
        """Returns the table of a sink in memory."""
        frame = pl.from_arrow(memory.tables[name])
        assert isinstance(frame, pl.DataFrame)
        return frame

    def dead_letters(self, pipeline: str = "pipeline") -> list[Row]:
        """Returns the dead letters."""
        state = self.root / ".penstock" / pipeline / "dead_letters"
        return list(DeadLetters(state).read().to_pylist())


def at(seconds: float) -> datetime:
    """Returns an event time."""
    return START + timedelta(seconds=seconds)


def dump(row: Row) -> str:
    """Encodes a row as JSON."""
    return json.dumps(row, default=_iso, ensure_ascii=False)


def assert_same_rows(actual: pl.DataFrame, expected: pl.DataFrame) -> None:
    """Asserts that two frames have the same rows, in any order."""
    assert_frame_equal(
        actual, expected, check_row_order=False, check_column_order=False, check_dtypes=False,
        check_exact=True,
    )  # fmt: skip


def _iso(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")

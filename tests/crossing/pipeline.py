"""Pipelines from one system to several others, run by Spark, and what their sinks hold."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from crossing import by_hand
from crossing.systems import System, Texts, all_rows, files
from crossing.wide_rows import COLUMNS, declaration, differences, exact, wide_rows
from penstock import app
from penstock.connectors import memory
from penstock.core.log import Silent
from penstock.runtime.dead_letters.store import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = "given"
"""The name of the files from which all other systems get their rows."""
SECONDS = 120
ARRIVED = "arrived"
"""The last sink, in memory, by which the end of messages that are received is known."""


class Crossing:
    """One run from a system, which holds the rows under the name `held`, to other systems.

    The sinks write under the name of the source. Messages that were taken away are sent again.
    """

    def __init__(self, directory: Path, source: System, sinks: Sequence[System], held: str) -> None:
        self.source, self.sinks, self.held = source, sinks, held
        self._directory = directory / source.name
        self._directory.mkdir()
        self._rows = source.holds(all_rows())
        self._columns = [name for name in COLUMNS if name not in source.dropped]
        self._name = held if source.feed is None else f"sent_to_{source.name}"

    def run(self, spark: SparkSession) -> Mapping[str, list[str]]:
        """Runs the pipeline. Returns the differences in each sink."""
        file = self._directory / "pipeline.yaml"
        file.write_text(json.dumps(self._document()))
        if self.source.feed is not None:
            self._receive(file, spark)
        options = app.RunOptions(until="caught_up", log=Silent())
        outcome = app.run(file, spark=spark.newSession(), options=options)
        assert outcome is not None and outcome.errors == {}, outcome
        letters = DeadLetters(self._directory / ".penstock" / "crossing" / "dead_letters").read()
        return {sink.name: self._differences(sink, letters.to_pylist()) for sink in self.sinks}

    def _receive(self, file: Path, spark: SparkSession) -> None:
        """Runs until the messages have arrived, which are sent meanwhile.

        The next run completes the last batch.
        """
        assert self.source.feed is not None and self.source.payloads is not None
        payloads = self.source.payloads(self.held)
        sending = ThreadPoolExecutor(1).submit(self.source.feed, self._name, payloads)
        handle = app.start(file, spark=spark.newSession(), options=app.RunOptions(log=Silent()))
        until = time.monotonic() + SECONDS
        while ARRIVED not in memory.tables or memory.tables[ARRIVED].num_rows < len(payloads):
            assert handle.wait(0.1) is None and time.monotonic() < until, "not all have arrived"
        sending.result()
        handle.stop()
        assert handle.wait(SECONDS) is not None

    def _document(self) -> dict[str, Any]:
        assert self.source.source is not None
        sinks: dict[str, Any] = {}
        transforms: dict[str, Any] = {}
        for sink in self.sinks:
            before, sql = "rows", self._selection(sink)
            if sql is not None:
                before = f"for_{sink.name}"
                transforms[before] = {"type": "sql", "sql": sql}
            sinks[sink.name] = {**sink.sink(self.source.name), "from": before}
        if self.source.feed is not None:
            sinks[ARRIVED] = {"type": "memory", "from": "rows"}
        memory.clear()
        return {
            "name": "crossing",
            "sources": {
                "rows": {**self.source.source(self._name), "schema": declaration(self._columns)}
            },
            "transforms": transforms,
            "sinks": sinks,
        }

    def _selection(self, sink: System) -> str | None:
        """Returns the query of the rows for a sink; None for all rows with all columns."""
        left = ", ".join(f"'{id_}'" for id_ in sorted(sink.without))
        columns = self._columns_of(sink)
        if not left and columns == self._columns:
            return None
        condition = f" WHERE id NOT IN ({left})" if left else ""
        return f"SELECT {', '.join(columns)} FROM rows{condition}"

    def _columns_of(self, sink: System) -> list[str]:
        return [name for name in self._columns if name not in sink.dropped]

    def _differences(self, sink: System, letters: Sequence[Mapping[str, Any]]) -> list[str]:
        found, bad = self._found(sink)
        rejected = {
            json.loads(letter["payload"])["id"]: letter["message"]
            for letter in letters
            if letter["node"] in (sink.name, f"sinks.{sink.name}")
        }
        return [
            *differences(sink.holds(self._rows), found),
            *by_hand.compare_letters(sink.rejects(self._rows), rejected),
            *(f"{id_}: {message}" for id_, message in bad.items()),
        ]

    def _found(self, sink: System) -> tuple[Texts, Mapping[str, str]]:
        """Returns the rows in a sink, and the errors of reading them."""
        sink.settle(self.source.name)
        if sink.stored is not None:
            return exact(sink.stored(self.source.name)), {}
        assert sink.source is not None
        columns = self._columns_of(sink)
        options = {**sink.source(self.source.name), "schema": declaration(columns)}
        if sink.payloads is None:
            rows, bad = by_hand.read(self._directory / sink.name, options)
        else:
            rows, bad = by_hand.decode(
                self._directory / sink.name, options, sink.payloads(self.source.name)
            )
        return exact(rows), bad


def crossings(directory: Path, all_: Sequence[System], count: int) -> Iterator[Crossing]:
    """Yields a run from files to all systems, and from each to `count` others."""
    path = directory / "files" / GIVEN
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_batches([wide_rows()]), path / "rows.parquet")
    first = files(directory / "files", "parquet", name=GIVEN)
    yield Crossing(directory, first, all_, GIVEN)
    for place, source in enumerate(all_):
        if source.is_source:
            others = [all_[(place + step) % len(all_)] for step in range(1, count + 1)]
            yield Crossing(directory, source, others, GIVEN)

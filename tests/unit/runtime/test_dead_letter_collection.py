"""Spool of a batch that is attempted again after some of its sinks have committed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors import memory
from penstock.connectors.files import FilesSink
from penstock.connectors.memory import MemorySink
from penstock.core.errors import Rejected, StateError
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.formats.json import Json, JsonConfig
from penstock.runtime.dead_letters.store import Collector, DeadLetters
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Context


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path)


def make_collector(state: StateDirectory, sink: Any = None) -> Collector:
    tables = SimpleNamespace(static=True, is_named=True)
    plan: Any = SimpleNamespace(dead_letter=sink, nodes={"table": tables}, name="p")
    return Collector(plan, state)


def reject(
    state: StateDirectory, node: str, *payloads: str, query: str = "q", batch: int = 0
) -> None:
    spool = Spool("p", query, node, "sink", directory=str(state.spool / query))
    dead_letters = spool.begin(batch, 0)
    for payload in payloads:
        dead_letters.add(payload.encode(), Rejected("too large"))
    dead_letters.close()


def stored(state: StateDirectory) -> list[Any]:
    dead_letters = DeadLetters(state.dead_letters).read().to_pylist()
    return sorted((letter["node"], letter["payload"]) for letter in dead_letters)


def test_committed_sink_keeps_its_dead_letters(state: StateDirectory) -> None:
    collector = make_collector(state)
    reject(state, "first", "a", "a")
    collector.keep("q", 0, "first")
    reject(state, "second", "b")
    collector.clear("q", 0, {"first"})
    reject(state, "second", "c")
    collector.collect("q", 0)
    assert stored(state) == [("first", b"a"), ("first", b"a"), ("second", b"c")]


def test_dead_letters_of_both_attempts_are_stored_once(state: StateDirectory) -> None:
    collector = make_collector(state)
    reject(state, "source", "a")
    collector.keep("q", 0, "first")
    collector.clear("q", 0, {"first"})
    reject(state, "source", "a")
    collector.keep("q", 0, "second")
    collector.collect("q", 0)
    assert stored(state) == [("source", b"a")]
    assert not [path for path in (state.spool / "q").iterdir() if path.name.isdigit()]


def test_batches_that_are_not_committed_stay_in_the_spool(state: StateDirectory) -> None:
    collector = make_collector(state)
    for batch, payload in ((3, "a"), (4, "b")):
        reject(state, "first", payload, batch=batch)
    assert not collector.collect("q", None) and not collector.collect("q", 2)
    assert collector.collect("q", 3) == {"first": 1}
    assert stored(state) == [("first", b"a")]
    assert collector.collect("q", 4) == {"first": 1}
    assert stored(state) == [("first", b"a"), ("first", b"b")]


def test_an_incomplete_partition_does_not_replace_its_dead_letters(state: StateDirectory) -> None:
    spool = Spool("p", "q", "source", "decode", directory=str(state.spool / "q"))
    for payload, complete in ((b"a", True), (b"b", False)):
        dead_letters = spool.begin(0, 0)
        dead_letters.add(payload, Rejected("too large"))
        dead_letters.close(complete=complete)
    make_collector(state).collect("q", 0)
    assert stored(state) == [("source", b"a")]


def test_dead_letters_within_their_limits(state: StateDirectory) -> None:
    reject(state, "first", "a")
    make_collector(state).collect("q", 0)
    dead_letters = DeadLetters(state.dead_letters)
    (path,) = dead_letters.files()
    size = path.stat().st_size
    dead_letters.enforce_limits(size, 60)
    with pytest.raises(StateError) as caught:
        dead_letters.enforce_limits(size - 1, 60)
    assert caught.value.code == "too-many-dead-letters"
    os.utime(path, (time.time() - 61, time.time() - 61))
    dead_letters.enforce_limits(0, 60)
    assert dead_letters.count() == 0


def test_kept_dead_letters_of_another_batch_are_removed(state: StateDirectory) -> None:
    collector = make_collector(state)
    reject(state, "first", "a")
    collector.keep("q", 0, "first")
    collector.clear("q", 0)
    collector.collect("q", 0)
    assert stored(state) == []


class Sink:
    """A node with a memory sink."""

    label, where = 'sink "dead"', None

    def __init__(self) -> None:
        memory.clear()
        config = MemorySink.config_type.model_validate({"name": "dead"})
        self.sink = MemorySink(config, Context("p", "dead"))


def payloads() -> list[bytes]:
    table: pa.Table = memory.tables["dead"]
    return sorted(table.column("payload").to_pylist())


def test_changed_rows_of_a_static_table(state: StateDirectory) -> None:
    collector = make_collector(state, Sink())
    for payload in ("a", "a", "b"):
        reject(state, "table", payload, query="table")
        collector.collect("table", 0)
    assert payloads() == [b"a", b"b"]


def make_files_sink(directory: Path, interval: str) -> Any:
    """Returns a node with a files sink that collects rows for an interval."""
    options = {"path": str(directory), "roll": {"interval": interval}}
    sink = FilesSink(FilesSink.config_type.model_validate(options), Context("p", "dead"))
    sink.format = Json(JsonConfig())
    return SimpleNamespace(label='sink "dead"', where=None, sink=sink)


def test_collected_files_of_dead_letters_are_published_at_the_end(
    state: StateDirectory, tmp_path: Path
) -> None:
    collector = make_collector(state, make_files_sink(tmp_path / "out", "1 hour"))
    reject(state, "first", "a")
    collector.collect("q", 0)
    collector.tick()
    assert not [*(tmp_path / "out").glob("part-*")]
    collector.complete()
    assert len([*(tmp_path / "out").glob("part-*")]) == 1


def test_collected_files_of_dead_letters_are_published_in_time(
    state: StateDirectory, tmp_path: Path
) -> None:
    collector = make_collector(state, make_files_sink(tmp_path / "out", "1 ms"))
    reject(state, "first", "a")
    collector.collect("q", 0)
    time.sleep(0.002)
    collector.tick()
    assert len([*(tmp_path / "out").glob("part-*")]) == 1


def test_state_older_than_the_dead_letter_sink(state: StateDirectory) -> None:
    collector = make_collector(state, Sink())
    for payload, batch in (("a", 3), ("b", 4), ("b", 4)):
        reject(state, "first", payload, batch=batch)
        collector.collect("q", batch)
    reject(state, "first", "c", batch=4)
    with pytest.raises(StateError) as caught:
        collector.collect("q", 4)
    assert caught.value.code == "state-older-than-sink"
    assert payloads() == [b"a", b"b"]


def test_rows_of_a_source_count_once_however_often_they_are_read(state: StateDirectory) -> None:
    collector = make_collector(state)
    spool = Spool("p", "q", "source", "decode", directory=str(state.spool / "q"))
    for partition, rows, complete in ((0, 5, True), (1, 3, True), (0, 5, True), (1, 2, False)):
        writer = spool.begin(0, partition)
        writer.read = rows
        writer.close(complete=complete)
    collector.collect("q", 0)
    collector.collect("q", 0)
    assert collector.read == {("q", "source"): 8}

"""A source's rows on their way to Spark: what is left out, counted and kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.memory.source import MemorySourceConfig
from penstock.engine.failures.dead_letter_files import read_dead_letters
from penstock.engine.sources.source import MIN_BYTES, MIN_ROWS, SourceTask, rebatch
from penstock.engine.tasks.dead_letter_writer import DeadLetterWriter, Spool
from penstock.engine.tasks.event_time import LATEST
from penstock.formats.json import Json, JsonConfig
from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.sdk import Capability, Conjunct, Offset, Read, ReplayableSource
from penstock.sdk.record import PAYLOAD

ROWS = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("place", pa.int64())])
SMALL = Pushdown(None, (Conjunct("n", "<", 3),))


class Topic(ReplayableSource[MemorySourceConfig]):
    """Delivers the payloads as a topic would, and notes how it is asked."""

    capabilities = frozenset({Capability.BYTES})

    def initial_offset(self) -> Offset:
        return {}

    def latest_offset(self, start: Offset) -> Offset:
        return {}

    def partitions(self, start: Offset, end: Offset) -> list[int]:
        return [0]

    def read(self, partition: int, read: Read) -> Iterator[pa.RecordBatch]:
        self.asked = read
        payloads = [payload.encode() for payload in self.config.payloads or ()]
        places = pa.array(range(len(payloads)), pa.int64())
        columns = [pa.array(payloads), pa.array(["t"] * len(payloads)), places, places]
        yield pa.RecordBatch.from_arrays(columns, names=[*PAYLOAD.names, "offset"])


def task(*payloads: str, **more: Any) -> SourceTask:
    source = Topic(MemorySourceConfig(payloads=list(payloads)))
    source.format, source.columns = Json(JsonConfig()), pa.schema(list(ROWS)[:2])
    spool = Spool("p", "q", "numbers", "decode", "drop")
    return SourceTask(source, ROWS, {"place": "offset"}, spool, **more)


def read(given: SourceTask) -> tuple[list[dict[str, Any]], DeadLetterWriter]:
    dead_letters = given.spool.begin(0, 0)
    rows = [row for batch in given.read(0, dead_letters) for row in batch.to_pylist()]
    return rows, dead_letters


def at(hour: int) -> str:
    return f"2024-01-01T{hour:02}:00:00Z"


def test_rows_that_do_not_meet_the_conjuncts_are_left_out_and_counted() -> None:
    given = task('{"n":1}', '{"n":9}', "{}", '{"n":2}', "x")
    assert [row["place"] for row in read(given)[0]] == [0, 1, 2, 3]
    rows, dead_letters = read(replace(given, pushdown=SMALL))
    assert [(row["n"], row["place"]) for row in rows] == [(1, 0), (2, 3)]
    assert (dead_letters.read, dead_letters.count) == (4, 1)


def test_a_record_that_cannot_be_decoded_is_bad_whatever_the_query_needs() -> None:
    given = task(
        '{"n":9,"at":"never"}', '{"n":1}', pushdown=Pushdown(frozenset({"n"}), SMALL.conjuncts)
    )
    rows, dead_letters = read(given)
    assert len(rows) == dead_letters.count == 1


def test_the_latest_row_moves_the_watermark() -> None:
    payloads = [f'{{"n":{n},"at":"{at(hour)}"}}' for n, hour in ((1, 3), (8, 7), (9, 7), (9, 5))]
    given = task(*payloads, '{"n":7}', pushdown=SMALL, event_time="at")
    rows, dead_letters = read(given)
    assert [row["n"] for row in rows] == [1, 8] and dead_letters.read == 5
    assert rows[1]["at"] == dt.datetime(2024, 1, 1, 7, tzinfo=dt.UTC)
    assert read(task('{"n":7}', "{}", pushdown=SMALL, event_time="at"))[0] == []


def test_the_source_receives_the_pushdown_unless_it_has_a_watermark() -> None:
    pushdown = Pushdown(frozenset({"n", "place"}), (*SMALL.conjuncts, Conjunct("place", ">", 0)))
    given = task('{"n":1}', pushdown=pushdown)
    read(given)
    assert isinstance(given.source, Topic)
    assert given.source.asked.columns == {"n"}
    assert given.source.asked.conjuncts == SMALL.conjuncts
    assert given.source.asked.metadata == ("offset",)
    read(replace(given, event_time="at"))
    assert given.source.asked.conjuncts == ()


def test_columns_that_are_not_used_are_spared() -> None:
    given = task(f'{{"n":1,"at":"{at(1)}"}}', pushdown=Pushdown(frozenset({"n"})))
    assert read(given)[0][0]["at"] is not None
    assert read(replace(given, null_unused_columns=True))[0] == [
        {"n": 1, "at": None, "place": None}
    ]
    everything = replace(given, pushdown=EVERYTHING, null_unused_columns=True)
    assert read(everything)[0] == read(given)[0]


def test_columns_that_are_never_null_are_always_read() -> None:
    given = task('{"n":1}', pushdown=Pushdown(frozenset()))
    rows = pa.schema([ROWS.field(0).with_nullable(False), *list(ROWS)[1:]])
    given.source.columns = pa.schema(list(rows)[:2])
    read(replace(given, rows=rows))
    assert isinstance(given.source, Topic)
    assert given.source.asked.columns == {"n"}


def test_event_times_out_of_range_are_bad_records() -> None:
    times = [
        "1900-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z", at(1),
        "8999-12-31T23:59:59Z", "9000-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
    ]  # fmt: skip
    given = task(*(f'{{"n":1,"at":"{time}"}}' for time in times), "{}", event_time="at")
    for partition_idle in (None, 1.0):
        rows, dead_letters = read(replace(given, latest_time=LATEST, partition_idle=partition_idle))
        assert [row["place"] for row in rows] == [2, 3, 4, 7] and dead_letters.count == 4


def test_a_dead_letter_of_an_event_time_holds_the_record(tmp_path: Path) -> None:
    given = task('{"n":1,"at":"1900-01-01T00:00:00Z"}', event_time="at", latest_time=LATEST)
    spool = replace(given.spool, on_error="dead_letter", directory=str(tmp_path))
    _, dead_letters = read(replace(given, spool=spool))
    dead_letters.close()
    (path,) = tmp_path.rglob("*.arrow")
    (letter,) = read_dead_letters(path).to_pylist()
    assert letter["code"] == "event-time-out-of-range" and letter["position"] == 0
    assert letter["payload"] == b'{"n":1,"at":"1900-01-01T00:00:00Z"}'


def sizes(*given: int, width: int = 0) -> list[int]:
    """How many rows the batches have that come of batches with so many."""
    rows = pa.RecordBatch.from_pydict({"n": range(sum(given)), "text": ["x" * width] * sum(given)})
    starts = [sum(given[:place]) for place in range(len(given))]
    parts = (rows.slice(start, count) for start, count in zip(starts, given, strict=True))
    found = list(rebatch(parts))
    assert not found or pa.Table.from_batches(found).combine_chunks() == pa.table(rows)
    return [batch.num_rows for batch in found]


def test_small_batches_are_put_together() -> None:
    assert sizes() == []
    assert sizes(3) == [3]
    assert sizes(*[MIN_ROWS // 4] * 10) == [MIN_ROWS, MIN_ROWS, MIN_ROWS // 2]
    assert sizes(MIN_ROWS, 1, 2) == [MIN_ROWS, 3]


def test_large_rows_are_not_gathered_without_bound() -> None:
    assert sizes(1, 1, 1, 1, width=MIN_BYTES // 2 + 1) == [2, 2]


def test_payloads_with_a_record_on_each_line(tmp_path: Path) -> None:
    given = task('{"n": 1}\n{"n": 2}\n\n', "", '{"n": "x"}\r\n{"n": 3}\r\nno')
    given.source.format = Json(JsonConfig(framing="lines"))
    given = replace(given, spool=Spool("p", "q", "numbers", "decode", directory=str(tmp_path)))
    rows, dead_letters = read(given)
    assert [(row["n"], row["place"]) for row in rows] == [(1, 0), (2, 0), (3, 2)]
    dead_letters.close()
    (kept,) = (pa.ipc.open_file(path).read_all() for path in tmp_path.rglob("*.arrow"))
    assert kept.column("payload").to_pylist() == [b'{"n": "x"}', b"no"]
    assert kept.column("position").to_pylist() == [2, 2]
    assert len(set(kept.column("id").to_pylist())) == 2
    (again,) = given.decode_again(b'{"n": 4}', "t", 2).to_pylist()
    assert (again["n"], again["place"]) == (4, None)
    given = replace(given, metadata={"place": "position"})
    assert given.decode_again(b'{"n": 4}', "t", 2).column("place").to_pylist() == [2]


def test_rows_with_an_unknown_operation_are_bad_records() -> None:
    columns = pa.schema([("op", pa.string())])
    source = Topic(MemorySourceConfig(payloads=['{"op":"i"}', '{"op":"U"}', "{}", '{"op":"d"}']))
    source.format, source.columns = Json(JsonConfig()), columns
    spool = Spool("p", "q", "changes", "decode", "drop")
    rows, dead_letters = read(SourceTask(source, columns, {}, spool, operation="op"))
    assert [row["op"] for row in rows] == ["i", "d"]
    assert (dead_letters.read, dead_letters.count) == (2, 2)

"""Candidates for late rows: the rows up to the watermark, with their records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import RecordError
from penstock.engine.failures.dead_letter_files import read_dead_letters
from penstock.engine.late.late_rows import lateness
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.late_candidates import LateCapture, read_candidates, select_candidates
from penstock.sdk.record import PAYLOAD

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def micros(time: datetime) -> int:
    return round(time.timestamp() * 1e6)


def batch(times: list[datetime | None], type_: pa.DataType | None = None) -> pa.RecordBatch:
    columns = [pa.array(range(len(times))), pa.array(times, type_ or pa.timestamp("us", "UTC"))]
    return pa.RecordBatch.from_arrays(columns, names=["id", "at"])


@pytest.mark.parametrize("type_", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
def test_rows_up_to_the_watermark_are_candidates(type_: pa.DataType) -> None:
    """Times up to 1970 are bad records, and rows without a time are in no window."""
    early = datetime(1970, 1, 1, tzinfo=UTC)
    times = [NOON, NOON + MICROSECOND, NOON - MICROSECOND, None, early, early + MICROSECOND]
    found = LateCapture("", "at").select(batch(times, type_), micros(NOON))
    assert found.tolist() == [0, 2, 5]


def test_the_watermark_is_that_of_the_batch_before(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    for number, watermark in enumerate((0, 0, 1000)):
        text = f"v1\n{json.dumps({'batchWatermarkMs': watermark})}\n{{}}"
        (tmp_path / "offsets" / str(number)).write_text(text)
    capture = LateCapture(str(tmp_path), "at")
    assert [capture.watermark(n) for n in (None, 0, 1, 2, 3)] == [None, None, None, None, 10**6]


def test_a_record_with_several_rows_has_no_payload() -> None:
    """The other rows of the record may not be late."""
    payloads = pa.RecordBatch.from_arrays(
        [pa.array([b"one", b"two"]), pa.array(["t", "t"]), pa.array([7, 8])], schema=PAYLOAD
    )
    rows = batch([NOON] * 3)
    found = select_candidates(rows, LateCapture("", "at").select(rows, micros(NOON)), payloads,
                              pa.array([0, 1, 1]))  # fmt: skip
    assert [column.to_pylist() for column in found.columns[2:]] == [
        [b"one", None, None], ["t", "t", "t"], [7, 8, 8], [None, 1, 2],
    ]  # fmt: skip


def test_candidates_of_all_partitions_are_read_in_order(tmp_path: Path) -> None:
    spool = Spool("p", "q", "s", "decode", directory=str(tmp_path))
    for partition in (10, 2):
        dead_letters = spool.begin(3, partition)
        rows = batch([NOON] * partition)
        dead_letters.candidates.append(select_candidates(rows, LateCapture("", "at").select(
            rows, micros(NOON))))  # fmt: skip
        dead_letters.close()
    Spool("p", "q", "s_s", "decode", directory=str(tmp_path)).begin(3, 0).close()
    found = read_candidates(tmp_path / "3", "s", ("decode", "output"))
    assert found is not None and found.column("id").to_pylist() == [*range(2), *range(10)]
    assert read_candidates(tmp_path / "4", "s", ("decode",)) is None


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(minutes=5), "5 minutes before the watermark 2026-01-01T12:00:00Z"),
        (timedelta(days=1), "1 day before the watermark 2026-01-01T12:00:00Z"),
        (timedelta(seconds=61), "61 seconds before the watermark 2026-01-01T12:00:00Z"),
        (timedelta(milliseconds=1500), "1.5 seconds before the watermark 2026-01-01T12:00:00Z"),
        (timedelta(0), "at the watermark"),
    ],
)
def test_the_message_has_the_lateness(before: timedelta, text: str) -> None:
    message = lateness(micros(NOON - before), micros(NOON))
    time = (NOON - before).isoformat().replace("+00:00", "Z")
    assert message == f"event time {time} is {text}"


def identity(directory: Path, payload: bytes, query: str = "q", **options: bool) -> str:
    """Returns the ID of the dead letter of a record."""
    spool = Spool(
        "p", query, "s", "decode", "dead_letter", directory=str(directory / query), **options
    )
    dead_letters = spool.begin(1, 0)
    dead_letters.add(payload, RecordError("late"), "topic-0", 7)
    dead_letters.close()
    (path,) = (directory / query).rglob("*.arrow")
    return str(read_dead_letters(path).column("id")[0])


def test_a_late_record_has_an_identity_in_each_query(tmp_path: Path) -> None:
    def identity_in(query: str, by_query: bool) -> str:
        return identity(tmp_path, b"x", query, by_query=by_query)

    assert identity_in("a", True) != identity_in("b", True) != identity_in("a", False)
    assert identity_in("a", False) == identity_in("b", False)


def test_records_of_one_position_are_distinct_by_their_content(tmp_path: Path) -> None:
    def identity_of(payload: bytes, by_content: bool) -> str:
        return identity(tmp_path, payload, by_content=by_content)

    assert identity_of(b"x", True) != identity_of(b"y", True)
    assert identity_of(b"x", False) == identity_of(b"y", False)

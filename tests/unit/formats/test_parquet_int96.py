"""INT96 timestamps of Parquet files: any year, and exact or an error of the row."""

from __future__ import annotations

import io
import struct
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import Read
from penstock.sdk.columns.ddl import arrow_schema

DAY, JULIAN_1970 = 86_400, 2_440_588
YEAR_1, YEAR_9999, YEAR_100000 = -62_135_596_800, 253_402_300_799, 3_093_527_980_800


def int96(seconds: int, nanos: int = 0) -> bytes:
    days, rest = divmod(seconds, DAY)
    return struct.pack("<qI", rest * 10**9 + nanos, (days + JULIAN_1970) % 2**32)


def file_of(values: list[bytes], nested: bool = False) -> bytes:
    """Returns a file whose placeholders are replaced by the values."""
    stamps = [pa.scalar(10**18 + number, pa.timestamp("ns")) for number in range(len(values))]
    column = pa.array([[stamp] for stamp in stamps] if nested else stamps)
    out = io.BytesIO()
    parquet.write_table(
        pa.table({"id": range(len(values)), "at": column}), out,
        use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none",
        store_schema=False, write_statistics=False,
    )  # fmt: skip
    file = out.getvalue()
    for number, value in enumerate(values):
        file = file.replace(int96(10**9, number), value)
    return file


def read(
    file: bytes, type_: str = "TIMESTAMP", **options: Any
) -> tuple[list[int], list[tuple[int, str]]]:
    schema, request = arrow_schema(f"id INT, at {type_}"), Read()
    micros = []
    format_ = Parquet(ParquetConfig(**options))
    for rows, _ in format_.read_file(io.BytesIO(file), schema, "f", request):
        column = rows.column("at")
        flat = column.flatten() if pa.types.is_list(column.type) else column
        micros += flat.cast(pa.int64()).to_pylist()
    return micros, [(bad.position, bad.error.code) for bad in request.bad]


@pytest.mark.parametrize("seconds", [0, YEAR_1, YEAR_9999, YEAR_100000, -9_223_372_037])
@pytest.mark.parametrize("nested", [False, True])
def test_timestamps_of_any_year(seconds: int, nested: bool) -> None:
    file = file_of([int96(seconds, 123_456_000), int96(0, 1000)], nested)
    type_ = "ARRAY<TIMESTAMP>" if nested else "TIMESTAMP"
    assert read(file, type_) == ([seconds * 10**6 + 123_456, 1], [])


def test_year_beyond_64_bits_costs_only_its_row() -> None:
    file = file_of([int96(0), int96(10**14), int96(YEAR_9999)])
    assert read(file) == ([0, YEAR_9999 * 10**6], [(2, "wrong-type")])


def test_nanoseconds_of_other_years_cost_only_their_row() -> None:
    file = file_of([int96(YEAR_9999), int96(YEAR_9999, 1), int96(YEAR_1)])
    assert read(file) == ([YEAR_9999 * 10**6, YEAR_1 * 10**6], [(2, "wrong-type")])


def test_nanoseconds_of_any_year_are_truncated_by_an_option() -> None:
    times = [YEAR_9999, YEAR_1, 0, -1]
    for values in (times, times[:2], times[2:]):
        file = file_of([int96(seconds, 1_999) for seconds in values])
        exact = [seconds * 10**6 + 1 for seconds in values]
        assert read(file, nanoseconds="truncate") == (exact, [])
        assert read(file) == ([], [(row + 1, "wrong-type") for row in range(len(values))])


def test_texts_of_times_do_not_depend_on_other_rows() -> None:
    near = [int96(0, 1_000), int96(0, 123_000_000), int96(0, 123_456_789), int96(5)]
    schema = arrow_schema("at STRING")
    texts = []
    for values in (near, [*near, int96(YEAR_9999)]):
        read_file = Parquet(ParquetConfig()).read_file
        batches = read_file(io.BytesIO(file_of(values)), schema, "f", Read())
        texts.append([text for rows, _ in batches for text in rows.column("at").to_pylist()])
    assert texts[0] == [
        "1970-01-01T00:00:00.000001", "1970-01-01T00:00:00.123",
        "1970-01-01T00:00:00.123456789", "1970-01-01T00:00:05",
    ]  # fmt: skip
    assert texts[1] == [*texts[0], "9999-12-31T23:59:59"]

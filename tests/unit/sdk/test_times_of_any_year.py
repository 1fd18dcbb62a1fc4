"""Dates and timestamps out of Python's range: years before 1 and after 9999."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from penstock.connectors.files.directories import directory_values
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.function import Step
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.sdk import Read
from penstock.sdk.columns.row_json import row_payload
from penstock.transforms.python import Python, PythonConfig

DAY = -719_528
MICROSECONDS = DAY * 86_400_000_000
DATES = pa.array([DAY, 0], pa.int32()).cast(pa.date32())
TIMES = pa.array([MICROSECONDS, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("column", [DATES, TIMES], ids=["date", "timestamp"])
def test_a_row_of_the_year_zero_is_json(column: pa.Array) -> None:
    nested = pa.StructArray.from_arrays([column, pa.array([[1], [2]])], names=["at", "n"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), column)
    rows = pa.record_batch([column, nested, lists], names=["at", "nested", "lists"])
    row = json.loads(row_payload(rows, 0))
    assert row["at"].startswith("0000-01-01")
    assert row["nested"] == {"at": row["at"], "n": [1]} and row["lists"] == [row["at"]]
    assert json.loads(row_payload(rows, 1))["at"].startswith("1970-01-01")


@pytest.mark.parametrize("column", [DATES, TIMES], ids=["date", "timestamp"])
def test_a_row_that_python_cannot_hold_is_a_dead_letter(column: pa.Array, tmp_path: Path) -> None:
    code = "def transform(row): return {'n': 1}"
    transform = Python(PythonConfig.model_validate({"code": code, "per": "row", "schema": "n INT"}))
    spool = Spool("p", "q", "t", "transform", directory=str(tmp_path))
    step = Step(transform, pa.schema([("n", pa.int32())]), spool)
    rows = pa.record_batch([column], names=["at"])
    assert sum(batch.num_rows for batch in step.run(iter([rows]), 0, 0)) == 1
    (file,) = tmp_path.rglob("*.arrow")
    (letter,) = ipc.open_file(str(file)).read_all().to_pylist()
    assert letter["payload"].startswith(b'{"at": "0000-01-01')


def test_a_directory_of_any_year() -> None:
    assert directory_values(DATES).to_pylist() == ["0000-01-01", "1970-01-01"]
    year, _ = directory_values(TIMES).to_pylist()
    assert year.startswith("0000-01-01")


@pytest.mark.parametrize("error", [MemoryError("malloc failed"), OverflowError("too large")])
def test_a_file_that_needs_too_much_memory_is_a_bad_record(error: Exception) -> None:
    class Corrupt(io.BytesIO):
        def read(self, size: Any = -1) -> bytes:
            raise error

    format_, read = Arrow(ArrowConfig()), Read(None, (), ())
    assert format_.infer_file(Corrupt()) is None
    assert list(format_.read_file(Corrupt(), pa.schema([("n", pa.int64())]), "a", read)) == []
    assert [record.error.code for record in read.bad] == ["not-arrow"]

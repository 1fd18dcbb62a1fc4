"""Rows of functions in Python: exact values of the declared columns, or dead letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.function import Step
from penstock.sdk.columns.ddl import arrow_schema
from penstock.transforms.python import Python, PythonConfig

HEAD = "import datetime as dt\nfrom decimal import Decimal\ndef transform(rows):\n  return "


def run(directory: Path, code: str, schema: str, per: str = "row") -> tuple[list[Any], list[str]]:
    """Returns the rows of a function over the column `id` with 1, 2, 3, and its dead letters."""
    options = {"code": HEAD + code, "per": per, "schema": schema}
    transform = Python(PythonConfig.model_validate(options))
    spool = Spool("p", "q", "t", "transform", directory=str(directory))
    step = Step(transform, arrow_schema(schema), spool)
    batch = pa.record_batch({"id": [1, 2, 3]})
    rows = [row for out in step.run(iter([batch]), 0, 0) for row in out.to_pylist()]
    files = [ipc.open_file(str(file)).read_all() for file in directory.rglob("*.arrow")]
    return rows, [message for file in files for message in file.column("message").to_pylist()]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("BIGINT", "2.75"), ("BIGINT", "Decimal('2.75')"), ("FLOAT", "1e300"), ("TIMESTAMP", "5"),
        ("DATE", "dt.datetime(2024, 1, 1, 13, 5)"), ("DATE", "5"), ("DOUBLE", "2**60 + 1"),
        ("DATE", "1.9"), ("ARRAY<INT>", "[1, 1.5]"), ("STRUCT<n: INT>", "{'n': 1.5}"),
        ("MAP<STRING, INT>", "{'n': 1.5}"), ("BOOLEAN", "5"), ("DECIMAL(4,2)", "1.005"),
    ],
)  # fmt: skip
def test_a_value_that_would_be_changed_is_a_dead_letter(
    tmp_path: Path, type_: str, value: str
) -> None:
    code = f"{{'v': {value} if rows['id'] == 2 else None}}"
    rows, dead_letters = run(tmp_path, code, f"v {type_}")
    assert rows == [{"v": None}, {"v": None}]
    assert len(dead_letters) == 1 and 'column "v' in dead_letters[0]


def test_values_are_converted_without_loss(tmp_path: Path) -> None:
    code = (
        "{'n': 2.0, 'd': dt.date(2024, 1, 1), 't': dt.datetime(2024, 1, 1), 'm': {'a': 1},"
        " 's': 'x', 'f': 1, 'e': Decimal('1.5')}"
    )
    schema = "n BIGINT, d DATE, t TIMESTAMP, m MAP<STRING, BIGINT>, s STRING, f DOUBLE, e DOUBLE"
    rows, dead_letters = run(tmp_path, code, schema)
    assert dead_letters == []
    assert rows[0]["t"].isoformat() == "2024-01-01T00:00:00+00:00"
    assert rows[0] | {"t": 0, "d": str(rows[0]["d"])} == {
        "n": 2, "d": "2024-01-01", "t": 0, "m": [("a", 1)], "s": "x", "f": 1.0, "e": 1.5
    }  # fmt: skip


def test_names_are_matched_by_case_and_foreign_ones_are_errors(tmp_path: Path) -> None:
    code = "{'n': 1, 'X': 'v'} if rows['id'] == 1 else {'other': 1} if rows['id'] == 2 else {}"
    rows, dead_letters = run(tmp_path, code, "N BIGINT, x STRING")
    assert rows == [{"N": 1, "x": "v"}, {"N": None, "x": None}]
    assert len(dead_letters) == 1 and "a row has none of the columns, but other" in dead_letters[0]


def test_a_row_whose_names_all_differ_by_case(tmp_path: Path) -> None:
    assert run(tmp_path / "lower", "{'n': 1}", "N BIGINT") == ([{"N": 1}] * 3, [])
    assert run(tmp_path / "upper", "{'N': 1}", "n BIGINT") == ([{"n": 1}] * 3, [])


def test_a_list_has_the_keys_of_all_its_rows(tmp_path: Path) -> None:
    code = "[{'n': i, **({'X': 'v'} if i > 1 else {})} for i in rows['id'].to_pylist()]"
    rows, dead_letters = run(tmp_path, code, "n BIGINT, x STRING", per="batch")
    assert dead_letters == []
    assert rows == [{"n": 1, "x": None}, {"n": 2, "x": "v"}, {"n": 3, "x": "v"}]


def test_a_list_without_declared_columns_has_the_keys_of_all_its_rows() -> None:
    code = "[{'n': 1}, {'n': 2, 'x': 'v'}]"
    transform = Python(PythonConfig.model_validate({"code": HEAD + code}))
    (rows,) = transform.apply(pa.record_batch({"id": [1]}))
    assert rows.to_pylist() == [{"n": 1, "x": None}, {"n": 2, "x": "v"}]

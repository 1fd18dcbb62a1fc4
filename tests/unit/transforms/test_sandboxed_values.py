"""Values that scripts receive and return: exact, or dead letters."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.sdk.columns.ddl import arrow_schema
from unit.transforms.sandboxed import run

EXTREMES = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "INT": [-(2**31), 2**31 - 1],
    "BIGINT": [2**53 - 1, 2**53 + 1, -(2**63), 2**63 - 1, 0],
    "FLOAT": [1.5, -0.0, math.inf, 2.0**100],
    "DOUBLE": [0.1, -0.0, -math.inf, 5e-324, 1.7976931348623157e308, 2.0**60],
    "DECIMAL(38,10)": [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.1")],
    "STRING": ["", "é😀\u0000\u2028\"'\\", "__proto__"],
    "BINARY": [b"", bytes(range(256))],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIMESTAMP": [
        dt.datetime(2024, 2, 29, 1, 2, 3, 456789, dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
    ],
    "TIMESTAMP_NTZ": [dt.datetime(2024, 2, 29, 1, 2, 3, 456789)],
    "ARRAY<BIGINT>": [[], [1, None, 2**60], [-(2**63)]],
    "ARRAY<STRUCT<a: DECIMAL(4,2), b: BINARY>>": [[{"a": Decimal("1.50"), "b": b"\xff"}, None]],
    "STRUCT<n: BIGINT, f: DOUBLE>": [{"n": 2**60, "f": math.inf}, {"n": None, "f": 0.5}],
    "MAP<STRING, BIGINT>": [[], [("__proto__", 2**60), ("a", None)]],
    "MAP<INT, ARRAY<DATE>>": [[(5, [dt.date(2024, 1, 1)])]],
}  # fmt: skip


def columns() -> pa.RecordBatch:
    """Returns a batch with a column for each type, whose rows have the values in turn."""
    size = max(map(len, EXTREMES.values())) + 1
    schema = arrow_schema({"id": "INT"} | {f"c{i}": type_ for i, type_ in enumerate(EXTREMES)})
    rows = [
        {"id": index}
        | {
            f"c{i}": values[index] if index < len(values) else None
            for i, values in enumerate(EXTREMES.values())
        }
        for index in range(size)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return [repr(row) for row in rows]


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("type_", "code"),
    [
        ("script", "function process(input) { return input; }"),
        ("script", "function process(input) { return [{...input}]; }"),
        ("jq", "."),
        ("vrl", "."),
    ],
)
def test_every_value_passes_unchanged(tmp_path: Path, type_: str, code: str) -> None:
    batch = columns()
    rows, dead_letters = run(tmp_path, type_, batch, code=code)
    assert dead_letters == {}
    expected = texts(batch.to_pylist())
    if type_ == "jq":  # which has no negative zero
        expected = [text.replace(" -0.0", " 0.0") for text in expected]
    assert texts(rows) == expected


@pytest.mark.slow
def test_types_in_a_script(tmp_path: Path) -> None:
    code = """
      function process(row) {
        const kinds = Object.keys(row).map((name) => {
          const value = row[name];
          return `${name}:${value?.constructor?.name}`;
        });
        return {kinds: kinds.join(" ")};
      }
    """
    batch = columns().slice(1, 1)
    rows, _ = run(tmp_path, "script", batch, code=code, schema="kinds STRING")
    names = dict(pair.split(":") for pair in rows[0]["kinds"].split())
    kinds = dict(zip(EXTREMES, list(names.values())[1:], strict=True))
    assert kinds["BIGINT"] == "BigInt" and kinds["INT"] == "Number"
    assert kinds["DECIMAL(38,10)"] == kinds["TIMESTAMP"] == kinds["DATE"] == "String"
    assert kinds["BINARY"] == "Uint8Array" and kinds["DOUBLE"] == "Number"


RESULTS: list[tuple[str, str, Any]] = [
    ("BIGINT", "10n ** 18n + 1n", 10**18 + 1),
    ("BIGINT", "'9007199254740993'", 2**53 + 1),
    ("BIGINT", "2 ** 53", None),
    ("BIGINT", "1.5", None),
    ("BIGINT", "10n ** 19n", None),
    ("INT", "NaN", None),
    ("INT", "'x'", None),
    ("INT", "5e0", 5),
    ("INT", "[1]", None),
    ("DOUBLE", "2 ** 60", 2.0**60),
    ("DOUBLE", "-0", -0.0),
    ("DOUBLE", "1 / 0", math.inf),
    ("DECIMAL(4,2)", "'1.50'", Decimal("1.50")),
    ("DECIMAL(4,2)", "0.1", Decimal("0.10")),
    ("DECIMAL(4,2)", "0.1 + 0.2", None),
    ("DECIMAL(38,0)", "2 ** 70", None),
    ("DECIMAL(38,0)", "2n ** 70n", Decimal(2**70)),
    ("STRING", "5", "5"),
    ("STRING", "2 ** 70", None),
    ("STRING", "{a: 1}", None),
    ("STRING", "undefined", ...),
    ("STRING", "() => 1", None),
    ("STRING", "'\\ud800'", None),
    ("BOOLEAN", "1", True),
    ("BOOLEAN", "2", None),
    ("TIMESTAMP", "new Date(1)", dt.datetime(1970, 1, 1, 0, 0, 0, 1000, dt.UTC)),
    ("TIMESTAMP", "new Date(NaN)", None),
    ("TIMESTAMP", "1", None),
    ("DATE", "'2024-01-02'", dt.date(2024, 1, 2)),
    ("BINARY", "new Uint8Array([1, 2, 3]).subarray(1)", b"\x02\x03"),
    ("BINARY", "'?'", None),
    ("ARRAY<INT>", "new Set([1, 2])", [1, 2]),
    ("ARRAY<INT>", "[1, 'x']", None),
    ("MAP<STRING, INT>", "new Map([['a', 1]])", [("a", 1)]),
    ("STRUCT<n: INT>", "{n: 1, extra: 2}", {"n": 1}),
    ("INT", "Promise.resolve(1)", None),
    ("INT", "(() => { const a = []; a[0] = a; return a; })()", None),
]


@pytest.mark.slow
def test_results_are_exact_or_dead_letters(tmp_path: Path) -> None:
    """All cases run in one script: row `i` returns the value of case `i` in the column of it."""
    schema = {f"c{index}": type_ for index, (type_, _, _) in enumerate(RESULTS)}
    cases = "".join(
        f"case {index}: return {{c{index}: {value}}};\n"
        for index, (_, value, _) in enumerate(RESULTS)
    )
    code = f"function process(row) {{ switch (row.id) {{ {cases} }} }}"
    batch = pa.record_batch({"id": list(range(len(RESULTS)))})
    rows, dead_letters = run(tmp_path, "script", batch, code=code, schema=schema)
    rejected = {index for index, case in enumerate(RESULTS) if case[2] is None}
    assert set(dead_letters) == rejected
    accepted = [index for index in range(len(RESULTS)) if index not in rejected]
    for index, row in zip(accepted, rows, strict=True):
        expected = None if RESULTS[index][2] is ... else RESULTS[index][2]
        found = row[f"c{index}"]
        assert found == expected and str(found) == str(expected), RESULTS[index]
    assert dead_letters[2] == (
        'column "c2": 9.007199254740992e+15 (DOUBLE) is not a BIGINT; '
        "a number from 2^53 on may be rounded"
    )


@pytest.mark.slow
def test_numbers_of_a_variant_are_exact(tmp_path: Path) -> None:
    text = '{"i":9007199254740993,"d":0.30000000000000004,"x":0.12345678901234567891,"s":[1e3]}'
    schema = arrow_schema("id INT, v VARIANT")
    batch = pa.RecordBatch.from_arrays([pa.array([1], pa.int32()), [text]], schema=schema)
    code = "function process(row) { return {...row.v, k: typeof row.v.i, v: row.v}; }"
    columns = "i BIGINT, d DOUBLE, x STRING, s ARRAY<INT>, k STRING, v VARIANT"
    rows, _ = run(tmp_path, "script", batch, code=code, schema=columns)
    assert rows == [
        {
            "i": 2**53 + 1, "d": 0.1 + 0.2, "x": "0.12345678901234567891", "s": [1000],
            "k": "bigint", "v": rows[0]["v"],
        }
    ]  # fmt: skip
    assert '"i": 9007199254740993' in rows[0]["v"]


@pytest.mark.slow
def test_numbers_that_jq_may_round_are_dead_letters(tmp_path: Path) -> None:
    batch = pa.record_batch({"id": [1, 2, 2**53 + 1, 4]})
    code = "if .id == 2 then {id: 9007199254740993} elif .id == 4 then {id: 4e15} else . end"
    rows, dead_letters = run(tmp_path, "jq", batch, code=code)
    assert rows == [{"id": 1}, {"id": 2**53 + 1}, {"id": 4 * 10**15}]
    assert "may be rounded" in dead_letters[2]


@pytest.mark.slow
def test_names_and_numbers_of_rows(tmp_path: Path) -> None:
    code = """
      function process(row) {
        if (row.id === 1) return null;
        if (row.id === 2) return [{ID: 1, "S": "x"}, null, {id: 2}];
        return {};
      }
    """
    rows, dead_letters = run(tmp_path / "a", "script", code=code)
    assert rows == [{"id": 1, "s": "x"}, {"id": 2, "s": None}, {"id": None, "s": None}]
    assert dead_letters == {}
    code = "function process(row) { return row.id < 3 ? {other: 1} : {...row, other: 1}; }"
    rows, dead_letters = run(tmp_path / "b", "script", code=code)
    message = 'TypeError: the output has no column "other"; declare the columns in schema'
    assert rows == [] and set(dead_letters.values()) == {message}
    rows, dead_letters = run(tmp_path / "c", "script", code=code, schema="id INT")
    assert rows == [{"id": 3}]
    assert set(dead_letters.values()) == {"TypeError: a row has none of the columns, but other"}


@pytest.mark.quick(3)
@pytest.mark.parametrize("value", ["undefined", "1", "'x'", "[1]", "[[{}]]", "true", "async"])
def test_other_results_are_dead_letters(tmp_path: Path, value: str) -> None:
    is_async = value == "async"
    body = "async function process() {}" if is_async else f"function process() {{ return {value} }}"
    rows, dead_letters = run(tmp_path, "script", code=body)
    assert rows == [] and len(dead_letters) == 3
    assert all("expected an object, an array of objects or null" in text
               for text in dead_letters.values())  # fmt: skip

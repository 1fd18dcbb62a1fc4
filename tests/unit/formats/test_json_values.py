"""JSON files that are arrays, or have objects of several lines."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.formats.json import Json, JsonConfig
from penstock.formats.json.values import read_values
from penstock.sdk import Read

COLUMNS = pa.schema([("id", pa.int64()), ("text", pa.string())])
ROWS = [{"id": 1, "text": 'a"]}\\'}, {"id": 2, "text": None}, {"id": 3, "text": "é\n"}]


def read(content: bytes, **options: Any) -> tuple[list[Any], list[Any]]:
    request = Read()
    format_ = Json(JsonConfig(**options))
    found = format_.read_file(io.BytesIO(content), COLUMNS, "f", request)
    rows = [row for batch, _ in found for row in batch.to_pylist()]
    return rows, [(bad.position, bad.error.code, bad.payload) for bad in request.bad]


LAYOUTS = {
    "array": json.dumps(ROWS),
    "array of lines": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "pretty array": json.dumps(ROWS, indent=2, ensure_ascii=False),
    "pretty objects": "\n".join(json.dumps(row, indent=4) for row in ROWS),
    "objects after their keys": "\n".join(json.dumps(row).replace(", ", ",\n") for row in ROWS),
    "two arrays": f" {json.dumps(ROWS[:1])}\n{json.dumps(ROWS[1:], indent=1)}",
    "lines": "\n".join(map(json.dumps, ROWS)),
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_layouts(text: str, encoding: str) -> None:
    content = text.encode(encoding)
    assert read(content) == (ROWS, [])
    assert Json(JsonConfig()).infer_file(io.BytesIO(content)) == COLUMNS
    if encoding != "utf-16":
        divisible = Json(JsonConfig()).is_divisible(content[:4096])
        assert divisible is (text == LAYOUTS["lines"])


def test_bad_values_cost_no_others() -> None:
    content = b'[{"id": 1}, 2, "a,]", {"id": "x"}, [3], null, {"id": 4}]'
    rows, bad = read(content)
    assert [row["id"] for row in rows] == [1, 4]
    assert [(number, payload) for number, _, payload in bad] == [
        (2, b"2"), (3, b'"a,]"'), (4, b'{"id": "x"}'), (5, b"[3]"), (6, b"null"),
    ]  # fmt: skip


def test_truncated_array_is_an_error() -> None:
    content = json.dumps(ROWS, indent=2).encode()
    for end in (len(content) - 1, len(content) - 10, content.index(b'"id": 3')):
        rows, bad = read(content[:end])
        assert rows in (ROWS, ROWS[:2]) and max(bad)[:2] == (len(rows) + len(bad), "not-json")


def test_damaged_first_line_of_lines_costs_only_itself() -> None:
    rows, bad = read(b'{"id": 1, "text": "a\n{"id": 2}\n{"id": 3}\n')
    assert [row["id"] for row in rows] == [2, 3] and [number for number, *_ in bad] == [1]


def test_layout_can_be_declared() -> None:
    content = b'{"id": 1}{"id": 2}\n{"id": 3}'
    assert [row["id"] for row in read(content, layout="values")[0]] == [1, 2, 3]
    rows, bad = read(b'[{"id": 1}]\n{"id": 2}', layout="lines")
    assert [row["id"] for row in rows] == [2] and len(bad) == 1


def test_rejected_value_is_read_again() -> None:
    format_, request = Json(JsonConfig()), Read()
    ((rows, _),) = format_.read_record(b'{\n "id":\n 7}', b"", COLUMNS, "f", request)
    assert rows.to_pylist() == [{"id": 7, "text": None}] and not request.bad


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=9) | st.lists(st.text()))),
    indent=st.sampled_from([None, 1]),
    block=st.integers(1, 40),
)
def test_blocks_of_any_size(rows: list[Any], indent: int | None, block: int) -> None:
    content = io.BytesIO(json.dumps(rows, indent=indent, ensure_ascii=False).encode())
    found = list(read_values(content, block=block))
    assert [json.loads(text) for part in found for text in part.texts.to_pylist()] == rows
    numbers = [number for part in found for number in part.numbers.tolist()]
    assert numbers == list(range(1, len(rows) + 1)) and not any(part.bad for part in found)


@pytest.mark.parametrize("long", [b'"' + b'\\\\"x' * 200 + b'"', b"[" + b"1," * 300 + b"1]"])
def test_value_that_is_too_long_costs_only_itself(long: bytes) -> None:
    content = io.BytesIO(b'[{"id": 1}, {"text": ' + long + b'}, {"id": 3}]')
    found = list(read_values(content, block=20, max_length=100))
    texts = [text for part in found for text in part.texts.to_pylist()]
    assert texts == [b'{"id": 1}', b'{"id": 3}']
    assert [bad[0] for part in found for bad in part.bad] == [2]

"""Rows of a batch that are read again with their places, and compared with failing rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_source_task import SMALL, task

from penstock.engine.failures.dead_letter_files import Place, read_batch, write_places
from penstock.engine.failures.placed_rows import (
    PLACE,
    Contents,
    Matching,
    PlacedRows,
    digest,
    knows_places,
    parse,
)
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import RecordError
from penstock.sdk.columns.row_json import row_payload

COLUMNS = pa.schema([("id", pa.int64()), ("text", pa.string()), ("x", pa.float64())])


def place(number: int) -> dict[str, Any]:
    return {"origin": f"f{number % 2}", "position": number, "number": number}


def placed(*rows: dict[str, Any], without: int = -1) -> pa.RecordBatch:
    places = [None if number == without else place(number) for number in range(len(rows))]
    struct = pa.struct([("origin", pa.string()), ("position", pa.int64()), ("number", pa.int64())])
    batch = pa.RecordBatch.from_pylist(list(rows), COLUMNS)
    return batch.append_column(PLACE, pa.array(places, struct))


def found(failing: list[dict[str, Any]], *batches: pa.RecordBatch) -> list[tuple[bytes, int]]:
    matching = Matching(COLUMNS, Contents.of([failing], COLUMNS))
    return [
        (row["content"], row["position"])
        for batch in matching(iter(batches))
        for row in batch.to_pylist()
    ]


A: dict[str, Any] = {"id": 1, "text": "a", "x": 0.5}
B: dict[str, Any] = {"id": None, "text": "\u00e9", "x": None}


@pytest.mark.parametrize("other", [{"id": 2}, {"text": "b"}, {"x": 0.25}, {"x": None}])
def test_only_rows_with_all_values_match(other: dict[str, Any]) -> None:
    content = digest(row_payload(placed(A).drop_columns([PLACE]), 0))
    assert found([A], placed({**A, **other}, A)) == [(content, 1)]


def test_each_content_has_as_many_rows_as_are_missing() -> None:
    places = [position for _, position in found([A, B, A], placed(A, B), placed(B, A, A, B))]
    assert places == [0, 1, 1]


def test_nulls_match_nulls_and_rows_without_a_place_do_not() -> None:
    assert [position for _, position in found([B, B], placed(B, A, B, without=0))] == [2]


def test_nodes_with_the_same_input_share_their_contents() -> None:
    contents = Contents.of([[A, A], [A, B]], COLUMNS)
    assert sorted(contents.counts.values()) == [1, 2]


def test_values_of_text_that_is_not_utf8_are_not_compared_first() -> None:
    payload = row_payload(placed(A).drop_columns([PLACE]), 0).replace(b'"a"', rb'"\udcff"')
    contents = Contents.of([[parse(payload)]], COLUMNS)
    assert set(contents.values) == {"id"} and contents.counts == {digest(payload): 1}


@pytest.mark.slow
def test_large_values_are_not_compared_first() -> None:
    rows = [{**A, "text": f"{number}" * 1000} for number in range(2000)]
    assert set(Contents.of([rows], COLUMNS).values) == {"id"}


def test_rows_of_payloads_have_the_places_of_their_records() -> None:
    given = task('{"n": 1}', "bad", '{"n": 9}', '{"n": 2}', pushdown=SMALL)
    read = PlacedRows(given, [0])
    assert knows_places(given)
    (batch,) = read(iter([pa.RecordBatch.from_pydict({"id": [0]})]))
    assert batch.schema.equals(read.schema())
    assert batch.column("n").to_pylist() == [1, 2]
    assert batch.column(PLACE).to_pylist() == [
        {"origin": "t", "position": 0, "number": 0},
        {"origin": "t", "position": 3, "number": 1},
    ]


def test_bad_records_are_left_out_whatever_their_spool() -> None:
    given = task("bad", '{"n": 1}')
    given = replace(given, spool=replace(given.spool, on_error="fail"))
    (batch,) = PlacedRows(given, [0])(iter([pa.RecordBatch.from_pydict({"id": [0]})]))
    assert batch.column("n").to_pylist() == [1]


def test_places_of_a_batch_change_no_ids(tmp_path: Path) -> None:
    writer = Spool("p", "q", "n", "transform", directory=str(tmp_path / "q")).begin(3, "sql-0")
    for payload in (b"1", b"1", b"2"):
        writer.add(payload, RecordError("no"))
    writer.close()
    folder = tmp_path / "q" / "3"
    before = read_batch(folder).to_pylist()
    assert len({each["id"] for each in before}) == 3
    write_places(folder, {before[1]["id"]: Place("f", 7)})
    after = read_batch(folder).to_pylist()
    assert [(each["origin"], each["position"]) for each in after] == [
        (None, None), ("f", 7), (None, None),
    ]  # fmt: skip
    assert [each["id"] for each in after] == [each["id"] for each in before]

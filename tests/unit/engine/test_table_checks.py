"""Checks of a dynamic table in a process: nulls, arrays, and values that are added later."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.sqlite.state_table import StateTable, StateTableSink
from penstock.engine.lookups.key_lookup import KeyLookup, OpenTable
from penstock.engine.lookups.table_checks import TableCheck
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import BatchId, Context, Read
from penstock.testing.given_table import GivenTable

STRINGS = pa.schema([("value", pa.string())])
NUMBERS = pa.schema([("value", pa.int64())])
OTHER = "it's; --`\"\n ü 😀"


class Table:
    """A table in a directory, and the operations on it."""

    def __init__(self, directory: Path, values: pa.Schema = STRINGS, given: tuple[str, ...] = ()):
        self.context = Context(state=directory / "nodes" / "t", owner="me")
        self.sink = StateTableSink(self.context)
        self.sink.mode, self.sink.primary_key = "upsert", ("value",)
        rows = pa.record_batch({"value": pa.array(given, pa.string())})
        other = GivenTable(self.context, rows) if given else None
        self.source = StateTable(self.context, values, other)
        self.values, self.batches = values, 0

    def fill(
        self, *values: object, operations: str | None = None, number: int | None = None
    ) -> None:
        self.batches += 1
        rows = pa.record_batch({"value": pa.array(values, self.values.types[0])})
        self.sink.prepare(rows.schema)
        client = self.sink.open()
        batch = BatchId("q", self.batches if number is None else number, "content")
        writer = self.sink.writer(client, batch, 0, rows.schema)
        kinds = None if operations is None else pa.array(list(operations))
        assert not writer.write(rows, None, kinds)
        self.sink.commit(batch, [writer.commit()])
        client.close()

    def lookup(self) -> KeyLookup:
        spool = Spool("p", "q", "t", "decode", "dead_letter", None, False)
        return KeyLookup(
            self.source, self.values, {}, spool, math.inf, 1 << 20, "run", keeps_missing=False
        )

    def check(self, array: pa.Array) -> list[bool | None]:
        (result,) = TableCheck(replace(self.lookup(), run_id=str(self.batches)))(iter([array]))
        return list(result.to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_a_table_without_a_fill_has_no_values(table: Table) -> None:
    assert table.check(pa.array(["a", None], pa.string())) == [False, None]
    assert not table.context.state.exists()  # type: ignore[union-attr]


def test_values_and_nulls(table: Table) -> None:
    table.fill("a", "", OTHER, "a")
    found = table.check(pa.array(["a", "A", "", None, OTHER, "a "], pa.string()))
    assert found == [True, False, True, None, True, False]
    assert table.check(pa.nulls(2)) == [None, None]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_an_array_is_checked_for_any_of_its_elements(table: Table, kind: object) -> None:
    table.fill("a", "b")
    lists = [["x"], ["x", "a"], [], None, [None], [None, "b"], ["a", "b"], ["y"]]
    array = pa.array(lists, kind(pa.string()))  # type: ignore[operator]
    expected = [False, True, False, None, False, True, True, False]
    assert table.check(array) == expected
    assert table.check(array[1:6]) == expected[1:6]
    assert table.check(array[:0]) == []


def test_other_integers_are_checked(tmp_path: Path) -> None:
    table = Table(tmp_path, NUMBERS)
    table.fill(1, 300, -(2**63))
    assert table.check(pa.array([1, 2, None], pa.int8())) == [True, False, None]
    assert table.check(pa.array([300, -(2**63)], pa.int64())) == [True, True]


def test_deletes_remove_values_and_a_repeated_batch_changes_nothing(table: Table) -> None:
    table.fill("a", "b", operations="ii")
    table.fill("a", "c", operations="di")
    expected = [False, True, True]
    assert table.check(pa.array(["a", "b", "c"])) == expected
    table.fill("a", "c", operations="di", number=2)
    table.fill("a", number=2)
    assert table.check(pa.array(["a", "b", "c"])) == expected


def test_given_values_are_beside_those_of_the_state(tmp_path: Path) -> None:
    table = Table(tmp_path, given=("a", "b"))
    assert table.check(pa.array(["a", "c"])) == [True, False]
    table.fill("a", "c")
    assert table.check(pa.array(["a", "b", "c", "d"])) == [True, True, True, False]


def test_a_missing_value_is_looked_up_again_in_the_next_batch(table: Table) -> None:
    keys = pa.record_batch({"value": ["a", "b"]})
    table.fill("a")
    opened = OpenTable(table.lookup())
    for number, values in enumerate([[True, False], [True, False], [True, True]]):
        if number == 2:
            table.fill("b")
        opened.begin(
            Spool("p", "q", "t", "decode", "fail", None, False).begin(number, 0), isolated=False
        )
        assert opened.rows_of(keys).is_valid().to_pylist() == values
    opened.close()


def test_many_keys_are_looked_up_in_parts(table: Table) -> None:
    table.fill(*(str(number) for number in range(0, 5000, 2)))
    source, keys = table.source, pa.record_batch({"value": [str(n) for n in range(1000)]})
    client = source.open()
    assert source.lookup(client, keys, Read()).num_rows == 500
    source.close_client(client)
    checked = table.check(pa.array([str(number) for number in range(5000)]))
    assert checked == [number % 2 == 0 for number in range(5000)]

"""Groups, orders, defaults, conditions and computed columns."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from handler_batches import batch, column, columns

from penstock.core.errors import StateError
from penstock.handlers.default import Default, DefaultValue
from penstock.handlers.errors import HandlerError
from penstock.handlers.filter import Filter
from penstock.handlers.group import GroupBy
from penstock.handlers.handler import Chain
from penstock.handlers.map import Map, MapColumn
from penstock.handlers.metadata import COLUMN_TYPE, Role, field_value, group_of
from penstock.handlers.sort import Sort
from penstock.handlers.state import decode

NAN = float("nan")


def groups(by: list[str], **values: Any) -> list[tuple[dict[str, str | None], list[Any]]]:
    count = len(next(iter(values.values())))
    outputs = GroupBy(by).handle(batch(**values, row=list(range(count))))
    return [(group_of(output.schema), column(output, "row")) for output in outputs]


def test_groups_are_in_the_order_of_their_keys() -> None:
    values = {"h": ["b", "a", "b", "a", "c"], "k": [2, 1, 1, 1, 0]}
    assert groups(["h", "k"], **values) == [
        ({"h": "a", "k": "1"}, [1, 3]),
        ({"h": "b", "k": "1"}, [2]),
        ({"h": "b", "k": "2"}, [0]),
        ({"h": "c", "k": "0"}, [4]),
    ]
    assert [rows for _, rows in groups(["k", "x", "h"], **values)] == [[4], [1, 3], [2], [0]]
    assert groups(["x"], **values) == [({}, [0, 1, 2, 3, 4])]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["b", None, "a", None, "null"],
         [("a", [2]), ("b", [0]), ("null", [4]), (None, [1, 3])]),
        ([None, None], [(None, [0, 1])]),
        ([True, False, None], [("false", [1]), ("true", [0]), (None, [2])]),
        ([NAN, 1.5, None, NAN, -0.0, 0.0], [("0", [4, 5]), ("1.5", [1]), ("nan", [0, 3]),
                                            (None, [2])]),
        (pa.array([2, 1, 2], pa.int32()), [("1", [1]), ("2", [0, 2])]),
        (pa.array([2, 1]).cast(pa.timestamp("ms")), [("1", [1]), ("2", [0])]),
    ],
)  # fmt: skip
def test_keys_of_every_kind(values: Any, expected: list[tuple[str | None, list[int]]]) -> None:
    assert groups(["k"], k=values) == [({"k": key}, rows) for key, rows in expected]


def test_a_group_is_extended() -> None:
    handler = Chain([GroupBy(["h"]), GroupBy(["k"])])
    outputs = handler.handle(batch(h=["b", "a"], k=[1, 2]))
    assert [group_of(each.schema) for each in outputs] == [
        {"h": "a", "k": "2"}, {"h": "b", "k": "1"}
    ]  # fmt: skip
    assert handler.handle(batch(h=["b"][:0], k=[1][:0])) == []


def test_the_order_of_rows() -> None:
    rows = batch(a=[NAN, 1.0, None, 1.0, NAN], b=[1, 2, 3, 1, 0])
    (output,) = Sort(["a", "x", "b"]).handle(rows)
    assert column(output, "b") == [1, 2, 0, 1, 3]
    assert math.isnan(column(output, "a")[3])
    (output,) = Sort(["a"]).handle(rows)
    assert column(output, "b") == [2, 1, 1, 0, 3]
    assert Sort(["a"]).handle(rows.slice(0, 0))[0].num_rows == 0
    with pytest.raises(HandlerError, match="array_sort_indices has no kernel"):
        Sort(["l"]).handle(batch(l=[[1]]))


def test_defaults() -> None:
    values = {"v": DefaultValue(pa.scalar(5)), "s": DefaultValue(pa.scalar(""), Role.TAG)}
    rows = batch(v=[None, 1])
    (output,) = Default(values).handle(rows)
    assert (column(output, "v"), column(output, "s")) == ([None, 1], ["", ""])
    assert field_value(output.schema.field("s"), COLUMN_TYPE) == "TAG"
    (output,) = Default(values, "both").handle(rows)
    assert (column(output, "v"), column(output, "s")) == ([5, 1], ["", ""])
    (output,) = Default(values, "null").handle(rows)
    assert output.schema.names == ["v"] and column(output, "v") == [5, 1]
    with pytest.raises(HandlerError, match="Column v has type double, and its default int64"):
        Default(values, "null").handle(batch(v=[1.5]))


VALUES = {
    "a": [1, 2, None, -7], "b": [2, 2, 2, 2], "d": [1.5, 2.0, NAN, None],
    "idle.mean": [90.0, 80.0, 85.0, None], "s": ["cpu", "mem", None, "c_u"],
    "t": [True, False, None, True],
}  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a = b", [1]), ("a <> b", [0, 3]), ("a < 2", [0, 3]), ("not a < 2", [1]),
        ("idle.mean < 85", [1]), ("less_than(idle.mean, 90.0)", [1, 2]), ("equal(s, 'cpu')", [0]),
        ("a IS NULL", [2]), ("s IS NOT NULL AND t", [0, 3]), ("a > 100 OR t", [0, 3]),
        ("t", [0, 3]), ("a IN (1, 2)", [0, 1]), ("a NOT IN (1, 2)", [3]),
        ("d BETWEEN 1.5 AND 2", [0, 1]), ("s LIKE 'c%'", [0, 3]), ("d = d", [0, 1]),
        ("a / b = -3", [3]), ("a % b = -1", [3]), ("-a > 1", [3]), ("a + b * 2 = 5", [0]),
        ("CASE WHEN a = 1 THEN 10 WHEN t THEN 20 ELSE 30 END > 10", [1, 2, 3]),
        ("CAST(a AS DOUBLE) = d", [1]), ("d / 0 > 1", [0, 1]), ("NULL", []), ("true", [0, 1, 2, 3]),
    ],
)  # fmt: skip
def test_conditions(condition: str, expected: list[int]) -> None:
    rows = batch(**VALUES, row=[0, 1, 2, 3])
    assert columns(Filter([condition]).handle(rows), "row") == [expected]
    (nothing,) = Filter([condition]).handle(rows.slice(0, 0))
    assert nothing.num_rows == 0 and nothing.schema == rows.schema


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("a = d", "Type error: The operands of a = d have different types: int64, double"),
        ("a = 'x'", "Type error: Expected a literal of type int64, found x"),
        ("a", "Type error: a has type int64, and not bool"),
        ("a AND t", "Type error: a has type int64, and not bool"),
        ("idle.maen = 1", 'No such column: idle.maen, did you mean "idle.mean"'),
        ("a = 1.5", "Invalid: Cannot evaluate a = 1.5"),
        ("a * 9223372036854775807 > 1", "Invalid: Cannot evaluate .* overflow"),
        ("a / 0 = 1", "Invalid: Cannot evaluate .* divide by zero"),
        ("a =", "Invalid: Invalid expression a ="),
        ("a = (SELECT 1)", "NotImplemented: Unsupported expression"),
        ("sqrt(d) > 1", "NotImplemented: Unsupported expression"),
        ("CAST(a AS FOO) = 1", "NotImplemented: Unsupported type foo"),
        ("CAST(s AS BIGINT) = 1", "Invalid: Cannot evaluate CAST"),
        ("t IS TRUE", "NotImplemented: Unsupported expression"),
        ("s LIKE s", "NotImplemented: Unsupported expression"),
        ("a IN ()", "NotImplemented: Unsupported expression"),
    ],
)
def test_wrong_conditions(condition: str, message: str) -> None:
    with pytest.raises(HandlerError, match=message):
        Filter([condition]).handle(batch(**VALUES))


def test_conditions_are_combined() -> None:
    rows = batch(**VALUES, row=[0, 1, 2, 3])
    assert columns(Filter(["t", "a < 0"]).handle(rows), "row") == [[3]]
    with pytest.raises(HandlerError, match="Invalid: Expected at least one condition for filter"):
        Filter([]).handle(rows)


def test_computed_columns_have_the_columns_of_the_input() -> None:
    rows = batch(a=[1, 2])
    given = [MapColumn("x", "a + 1", Role.TAG), MapColumn("y", "a * 2"), MapColumn("one", "1")]
    (output,) = Map(given).handle(rows)
    assert [column(output, name) for name in ("x", "y", "one")] == [[2, 3], [2, 4], [1, 1]]
    assert field_value(output.schema.field("x"), COLUMN_TYPE) == "TAG"
    with pytest.raises(HandlerError, match="No such column: x"):
        Map([*given, MapColumn("z", "x + 1")]).handle(rows)
    with pytest.raises(HandlerError, match="Key error: Duplicate of column names: a"):
        Map([MapColumn("a", "1")]).handle(rows)


def test_a_state_of_an_earlier_version_is_an_error() -> None:
    with pytest.raises(StateError, match="was written by an earlier version"):
        decode(b'{"groups": {}}')

"""Aggregates of batches: values, times, groups and types."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from handler_batches import batch, column

from penstock.handlers.aggregate import Aggregate, AggregateColumn
from penstock.handlers.aggregate_functions import FUNCTIONS, Function
from penstock.handlers.errors import HandlerError
from penstock.handlers.metadata import (
    group_of,
    measurement_column,
    time_column,
    with_measurement,
)


def aggregated(rows: pa.RecordBatch, function: Function, time: Function = "last") -> list[Any]:
    """Returns the time and the aggregate of the column `v`."""
    (output,) = Aggregate([AggregateColumn(function, "v", "r")], time).handle(rows)
    return [*column(output, "time"), *column(output, "r")]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([4, 1, 2, 3], {"first": 1, "last": 3, "min": 1, "max": 4, "mean": 2.5}),
        ([4, None, 2, None], {"first": None, "last": None, "min": 2, "max": 4, "mean": 3.0}),
        ([1.5, 2.5, 3.5, 4.5], {"first": 2.5, "last": 4.5, "min": 1.5, "max": 4.5, "mean": 3.0}),
        ([True, False, True, True], {"first": False, "last": True, "min": False, "max": True,
                                     "mean": 0.75}),
        (pa.array([None] * 4, pa.int64()), dict.fromkeys(FUNCTIONS)),
        ([2**62, 2**62, 2**62, 2**62], {"mean": float(2**62)}),
    ],
)  # fmt: skip
def test_values(values: Any, expected: dict[Function, Any]) -> None:
    rows = batch(time=[5, 3, 3, 5], v=values)
    for function, result in expected.items():
        assert aggregated(rows, function) == [5, result], function


def test_times() -> None:
    rows = batch(time=[5, None, 2, 3], v=[1, 2, 3, 4])
    found = {each: aggregated(rows, "last", each)[0] for each in FUNCTIONS}
    assert found == {"first": 2, "last": 5, "min": 2, "max": 5, "mean": 3}
    assert aggregated(batch(time=[-3, -4], v=[1, 2]), "last", "mean") == [-3, 1]
    nothing = batch(time=[None, None], v=[7, 8])
    assert [aggregated(nothing, each, each) for each in ("first", "last", "mean")] == [
        [None, 7], [None, 7], [None, 7.5]
    ]  # fmt: skip


def test_the_rows_of_groups() -> None:
    def rows(host: str, times: list[int]) -> pa.RecordBatch:
        found = batch({"host": host}, time=times, host=[host] * len(times), v=times)
        schema = with_measurement(found.schema.insert(3, pa.field("m", pa.string())), "m")
        return pa.RecordBatch.from_arrays([*found.columns, ["cpu"] * len(times)], schema=schema)

    handler = Aggregate([AggregateColumn("last", "v", "v.last")], time_name="at")
    outputs = handler.handle_all([rows("b", [1]), rows("a", [2]), rows("b", []), rows("b", [3, 4])])
    assert [output.schema.names for output in outputs] == [["at", "m", "host", "v.last"]] * 2
    assert [column(output, "v.last") for output in outputs] == [[1, 4], [2]]
    assert [group_of(output.schema) for output in outputs] == [{"host": "b"}, {"host": "a"}]
    assert {time_column(output.schema) for output in outputs} == {"at"}
    assert {measurement_column(output.schema) for output in outputs} == {"m"}


def test_a_column_that_some_batches_lack() -> None:
    handler = Aggregate([AggregateColumn("mean", "v", "r"), AggregateColumn("min", "x", "s")])
    batches = [batch(time=[1], w=[1]), batch(time=[2], v=[3]), batch(time=[3], v=[4.5])]
    (output,) = handler.handle_all(batches)
    assert column(output, "r") == [None, 3.0, 4.5]
    assert output.schema.field("s").type == pa.null()


@pytest.mark.parametrize(
    ("function", "values", "message"),
    [
        ("min", ["a"], r"NotImplemented: Function min_max has no kernel .*\(array\[string\]\)"),
        ("mean", ["a"], r"NotImplemented: Function mean has no kernel .*\(array\[string\]\)"),
        ("last", pa.array([1], pa.int32()), "NotImplemented: Step-by-step array building"),
    ],
)
def test_types_without_support(function: Function, values: Any, message: str) -> None:
    with pytest.raises(HandlerError, match=message):
        aggregated(batch(time=[1], v=values), function)


def test_errors() -> None:
    given = [AggregateColumn("last", "v", "r")]
    with pytest.raises(HandlerError, match="Invalid: Duplicate of column names: r"):
        Aggregate([*given, *given])
    handler = Aggregate(given)
    with pytest.raises(HandlerError, match="RecordBatch's metadata has no key time_column_name"):
        handler.handle(batch(v=[1]))
    with pytest.raises(HandlerError, match="Key error: Column h of the group"):
        handler.handle(batch({"h": "a"}, time=[1], v=[1]))
    with pytest.raises(HandlerError, match="different types in the batches of a group"):
        handler.handle_all([batch(time=[1], v=[1]), batch(time=[1], v=["a"])])
    assert handler.handle(batch(time=[], v=[1][:0])) == []


def plain(times: list[int | None], values: list[Any], function: Function) -> Any:
    """The aggregate of one batch in plain Python."""
    known = [value for value in values if value is not None]
    if function in ("first", "last"):
        rows = [index for index, time in enumerate(times) if time is not None]
        if not rows:
            return values[0]
        if function == "first":
            return values[min(rows, key=lambda index: (times[index], index))]
        return values[max(rows, key=lambda index: (times[index], index))]
    if not known:
        return None
    return (
        sum(known) / len(known) if function == "mean" else {"min": min, "max": max}[function](known)
    )


@pytest.mark.slow
def test_many_groups_at_once() -> None:
    """The batches of all groups are aggregated together; each has its own row."""
    chance = random.Random(5)
    given: dict[str, list[tuple[list[Any], list[Any]]]] = {}
    batches = []
    for _ in range(300):
        count, host = chance.randrange(1, 8), chance.choice("abcde")
        times = [chance.choice([1, 2, 3, None, 3, -1]) for _ in range(count)]
        values = [chance.choice([None, 0, 7, -3, 2**60, -(2**62)]) for _ in range(count)]
        given.setdefault(host, []).append((times, values))
        hosts = pa.array([host] * count)
        v = pa.array(values, pa.int64())
        batches.append(batch(group={"host": host}, time=times, host=hosts, v=v))
    handler = Aggregate([AggregateColumn(function, "v", function) for function in FUNCTIONS])
    outputs = handler.handle_all(batches)
    assert [group_of(each.schema)["host"] for each in outputs] == [*given]
    for output, parts in zip(outputs, given.values(), strict=True):
        for function in FUNCTIONS:
            assert column(output, function) == [plain(*part, function) for part in parts]
        newest = [max((t for t in times if t is not None), default=None) for times, _ in parts]
        assert column(output, "time") == newest

"""Groups are removed after a time without rows, however the rows are divided into batches."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from handler_batches import batch, column

from penstock.handlers.derivative import Derivative, DerivativeCase
from penstock.handlers.expiry import ExpiringGroups
from penstock.handlers.handler import Handler
from penstock.handlers.stream import Stream
from penstock.handlers.window import WindowHandler
from penstock.transforms.handlers.chain import Chain
from penstock.transforms.handlers.config import HandlersConfig
from penstock.transforms.handlers.transform import bucket_handler


def windows() -> Handler:
    return Stream([WindowHandler(10, 5)])


def derivatives() -> Handler:
    return Stream([Derivative({"slope": DerivativeCase("v")}, 10**9, 10**9)])


def rows_of(outputs: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for each in outputs for row in each.to_pylist()]


def test_the_rows_that_wait_are_output() -> None:
    handler = ExpiringGroups(["host"], windows, 20)
    rows = batch(time=[0, 1, 2, 30, 50], host=["a", "b", "a", "b", "b"])
    outputs = handler.handle(rows)
    assert [column(each, "host") for each in outputs if column(each, "host")[0] == "a"] == [
        ["a", "a"], ["a", "a"],
    ]  # fmt: skip
    assert len(handler.state()["groups"]) == 1
    (late,) = handler.handle(batch(time=[51, 52, 57], host=["b", "a", "a"]))[-1:]
    assert column(late, "host") == ["a"]  # a new group, whose first window ends at 57


def test_the_removal_itself_has_an_effect() -> None:
    """Without it the second window of `a` would have the rows before."""
    rows = batch(time=[0, 1, 100, 101], host=["a", "b", "b", "a"], v=[0.0, 1.0, 2.0, 3.0])
    kept = ExpiringGroups(["host"], windows, 1000)
    kept.handle(rows)
    removed = ExpiringGroups(["host"], windows, 10)
    removed.handle(rows)
    starts = [
        {key: state["states"][0]["groups"][0][1]["end"] for key, state in each.state()["groups"]}
        for each in (kept, removed)
    ]
    assert starts[0] != starts[1]


@pytest.mark.quick(1)
@pytest.mark.parametrize("create", [windows, derivatives])
def test_divisions_and_restarts_change_nothing(create: Callable[[], Handler]) -> None:
    chance = random.Random(3)
    count = 300
    times = [index * 3 - chance.randrange(6) for index in range(count)]
    hosts = [f"h{index // 40 % 5}" for index in range(count)]
    rows = batch(time=times, host=hosts, v=[chance.random() for _ in range(count)])
    found = []
    for size in (count, 1, 7, 53):
        handler = ExpiringGroups(["host"], create, 40)
        outputs = []
        for start in range(0, count, size):
            outputs += handler.handle(rows.slice(start, size))
            restored = ExpiringGroups(["host"], create, 40)
            restored.load(handler.save())
            handler = restored
        found.append(sorted(map(repr, rows_of(outputs))))
    assert all(each == found[0] for each in found)
    assert len(found[0]) > count / 2


def test_rows_that_wait_pass_the_handlers_after_the_state() -> None:
    config = HandlersConfig.model_validate({
        "by": ["host"], "ttl": "20s",
        "handlers": [
            {"type": "window", "period": "10s", "every": "10s"},
            {"type": "aggregate", "columns": [{"function": "mean", "column": "v", "as": "m"}]},
            {"type": "map", "set": {"is_high": "m > 1.5"}},
        ],
    })  # fmt: skip
    handler = bucket_handler(Chain(config.handlers, ()), ("host",), ttl=20)
    rows = batch(time=[0, 1, 2, 40], host=["a", "b", "a", "b"], v=[1.0, 9.0, 3.0, 0.0])
    found = rows_of(handler.handle_all([rows]))
    assert sorted(row[1:] for row in found) == [("a", 2.0, True), ("b", 9.0, True)]

"""Windows of event time: bounds, late rows, groups, and periods that change."""

from __future__ import annotations

import pyarrow as pa
import pytest
from handler_batches import batch, columns, dropped
from hypothesis import given
from hypothesis import strategies as st

from penstock.handlers.dynamic_window import DynamicWindow
from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Handler
from penstock.handlers.metadata import TIME_UNIT, group_of, with_field_value
from penstock.handlers.window import LATE, WindowHandler


def run(handler: Handler, *calls: list[int]) -> list[list[list[int]]]:
    return [columns(handler.handle(batch(time=times)), "time") for times in calls]


def test_the_windows_of_the_reference() -> None:
    calls = ([0, 4], [5, 6], [8, 20], [21])
    filled = run(WindowHandler(5, 3, fill_period=True), *calls)
    assert filled == [[], [[0, 4]], [[4, 5, 6], [6, 8]], []]
    partial = run(WindowHandler(5, 3), *calls)
    assert partial == [[[0]], [[4, 5]], [[4, 5, 6, 8], [8]], [[20]]]


def test_late_rows_are_dropped() -> None:
    handler = WindowHandler(10, 10, fill_period=True)
    assert run(handler, [0, 12]) == [[[0]]]
    assert run(handler, [2, 6, 15]) == [[]]
    assert dropped(handler) == [([2, 6], LATE)]
    assert run(handler, [20]) == [[[12, 15]]]
    assert dropped(handler) == []


def test_rows_between_windows_are_in_none() -> None:
    handler = WindowHandler(2, 5)
    assert run(handler, [0, 1, 2, 3], [4, 5, 7], [8, 9, 11]) == [[], [[3, 4]], [[8, 9]]]
    assert dropped(handler) == []


def test_rows_before_the_first_one() -> None:
    handler = WindowHandler(5, 5, fill_period=True)
    assert run(handler, [3], [1, 2], [8]) == [[], [], [[3]]]
    assert dropped(handler) == [([1, 2], LATE)]


def test_negative_times_and_fractions() -> None:
    handler = WindowHandler(5, 5, fill_period=True)
    found = handler.handle(batch(unit="ms", time=[-5999, -1, 5999]))
    assert columns(found, "time") == [[-5999], [-1]]
    assert run(WindowHandler(5, 5, fill_period=True), [-5, -1, 0, 4, 5]) == [[[-5, -1], [0, 4]]]


def test_a_long_silence_takes_no_time() -> None:
    handler = WindowHandler(3, 2)
    assert run(handler, [0], [10**12], [10**12 + 2]) == [[], [[0]], [[10**12]]]
    assert run(WindowHandler(1, 2), [0, 10**12 + 1, 10**12 + 3]) == [[[10**12 + 1]]]


def test_each_group_has_windows() -> None:
    handler = WindowHandler(5, 5, fill_period=True)
    outputs = handler.handle_all(
        [batch({"h": "a"}, time=[0, 6]), batch({"h": "b"}, time=[3, 9]), batch(time=[20])]
    )
    assert columns(outputs, "time") == [[0], [3]]
    assert [group_of(output.schema) for output in outputs] == [{"h": "a"}, {"h": "b"}]


def test_columns_that_change_within_a_window() -> None:
    handler = WindowHandler(10, 10, fill_period=True)
    for each in (batch(time=[0], v=[1]), batch(time=[1], v=[2]), batch(time=[2], v=["x"])):
        assert handler.handle(each) == []
    assert columns(handler.handle(batch(time=[10], v=[3])), "v") == [[1, 2], ["x"]]


def test_rows_without_a_time() -> None:
    handler = WindowHandler(5, 5, fill_period=True)
    assert run(handler, [1, None, 2], [None], [], [7]) == [[], [], [], [[1, 2]]]  # type: ignore[list-item]
    assert [times for times, _ in dropped(handler)] == [[None], [None]]


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(-20, 60), max_size=6), max_size=8), st.integers(1, 9),
       st.integers(1, 9), st.booleans())  # fmt: skip
def test_each_window_has_the_rows_of_its_interval(
    calls: list[list[int]], period: int, every: int, fill: bool
) -> None:
    handler, plain = WindowHandler(period, every, fill_period=fill), Plain(period, every, fill)
    for call in calls:
        restored = WindowHandler(period, every, fill_period=fill)
        restored.load(handler.save())
        expected = plain.handle(sorted(call))
        assert columns(handler.handle(batch(time=call)), "time") == expected
        assert columns(restored.handle(batch(time=call)), "time") == expected


class Plain:
    """The windows of sorted calls by their definition, second by second."""

    def __init__(self, period: int, every: int, fill: bool) -> None:
        self.period, self.every, self.fill = period, every, fill
        self.end: int | None = None
        self.rows: list[int] = []

    def handle(self, call: list[int]) -> list[list[int]]:
        if not call:
            return []
        if self.end is None:
            self.end = call[0] + (self.period if self.fill else self.every)
        closed = []
        for time in call:
            while time >= self.end:
                rows = [row for row in self.rows if self.end - self.period <= row < self.end]
                closed += [rows] if rows else []
                self.end += self.every
            self.rows.append(time)
        return closed


@pytest.mark.parametrize(("period", "every"), [(0, 1), (1, 0), (-1, 1), (1, 2**41)])
def test_durations_are_positive(period: int, every: int) -> None:
    with pytest.raises(HandlerError, match="must be at least 1 second and at most"):
        WindowHandler(period, every)


def dynamic(times: list[int], every: list[int | None], unit: str = "SECOND") -> pa.RecordBatch:
    rows = batch(time=times, every=pa.array(every, pa.int64()))
    schema = rows.schema.set(1, with_field_value(rows.schema.field(1), TIME_UNIT, unit))
    return pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def test_periods_of_the_reference() -> None:
    handler = DynamicWindow(7, 5, every_column="every")
    assert columns(handler.handle(dynamic([0, 3, 5], [5, 3, 3])), "time") == [[0]]
    handler = DynamicWindow(7, 5, every_column="every")
    assert handler.handle(dynamic([0, 5], [5, 7])) == []


def test_a_shorter_distance_takes_effect_after_the_current_end() -> None:
    handler = DynamicWindow(10, 10, fill_period=True, every_column="every")
    times, every = [0, 8, 10, 11, 12, 13], [10, 2, 2, 2, 2, 2]
    assert columns(handler.handle(dynamic(times, every)), "time") == [[0, 8], [8, 10, 11]]


def test_nulls_and_missing_columns_change_nothing() -> None:
    handler = DynamicWindow(2, 2, fill_period=True, every_column="every")
    found = handler.handle(dynamic([0, 1, 2, 4], [2, None, None, 2]))
    assert columns(found, "time") == [[0, 1], [2]]
    assert columns(handler.handle(batch(time=[6])), "time") == [[4]]


@pytest.mark.parametrize(
    ("value", "unit", "message"),
    [
        (0, "SECOND", r"at least 1 second and at most \d+ seconds, found 0 \(SECOND\)"),
        (999, "MILLI", r"found 2 \(MILLI\)"),
        (2**60, "WEEK", "at most"),
    ],
)
def test_a_wrong_duration_changes_nothing(value: int, unit: str, message: str) -> None:
    handler = DynamicWindow(2, 2, every_column="every")
    before = handler.save()
    with pytest.raises(HandlerError, match=message):
        handler.handle(dynamic([0, 5], [2, value], unit))
    assert handler.save() == before


def test_durations_of_arrow() -> None:
    handler = DynamicWindow(9, 9, period_column="period")
    rows = batch(time=[0, 1], period=pa.array([3000, 3000], pa.duration("ms")))
    assert handler.handle(rows) == []
    with pytest.raises(HandlerError, match="NotImplemented: Unexpected duration column's type"):
        handler.handle(batch(time=[2], period=pa.array([3]).cast(pa.timestamp("s"))))
    with pytest.raises(HandlerError, match="Invalid: Field has no metadata"):
        handler.handle(batch(time=[2], period=[3]))

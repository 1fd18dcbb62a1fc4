"""The threshold that follows values: changes of its level, and rows that change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from handler_batches import batch, column
from hypothesis import given
from hypothesis import strategies as st

from penstock.handlers.dispatch import Dispatch
from penstock.handlers.errors import HandlerError
from penstock.handlers.threshold import Threshold, ThresholdOptions

FULL = ThresholdOptions("v", "level", 10, 2, 5, 0.3, 0.5, 5, 2, 70)


def levels(options: ThresholdOptions, times: list[Any], values: list[Any]) -> list[float]:
    (output,) = Threshold(options).handle(batch(time=times, v=values))
    return column(output, "level")


@pytest.mark.parametrize(
    ("options", "times", "values", "expected"),
    [
        (FULL, [0, 5, 6, 7, 13, 14, 20, 21], [15, 15, 15, 25, 25, 41, 41, 90],
         [10, 10, 20, 20, 40, 40, 70, 70]),
        (FULL, [0, 5, 6, 7, 12, 13], [1] * 6, [10, 10, 5, 5, 2.5, 2.5]),
        (FULL, [0, 2, 9], [1.0, 5.0, 1.0], [10, 10, 10]),
        (FULL, [0, 6, 12], [1.0, 3.0, 3.0], [10, 5, 5]),
        (FULL, [10, 4, 15, 16], [15, 15, 15, 15], [10, 10, 10, 20]),
        (ThresholdOptions("v", "level", 20, 2, 1, 0, 0, 0, 0, 30), [100, 102], [40, 50], [20, 30]),
        (ThresholdOptions("v", "level", 20, 2, 1, 0.4, 0.5, 1, 15), [100, 102], [5, 3], [20, 15]),
        (ThresholdOptions("v", "level", 40, 2, 1, 0, 0, 0, 0, 30), [0, 2, 3], [50] * 3,
         [40, 30, 30]),
    ],
)  # fmt: skip
def test_levels(
    options: ThresholdOptions, times: list[int], values: list[float], expected: list[float]
) -> None:
    assert levels(options, times, values) == expected


def test_a_recovery_keeps_the_level() -> None:
    assert levels(FULL, [0, 1, 2, 8], [1.0, 5.0, 5.0, 5.0]) == [10, 10, 10, 10]


def test_nulls_change_nothing() -> None:
    assert levels(FULL, [0, 6, 7], [None, None, 15.0]) == [10, 10, 10]
    assert levels(FULL, [0, 3, 6], [15.0, None, 15.0]) == [10, 10, 20]
    assert levels(FULL, [0, None, 6], [15.0, 15.0, 15.0]) == [10, 10, 20]
    assert levels(FULL, [0, 3, 6], [15.0, float("nan"), 15.0]) == [10, 10, 20]


def test_errors() -> None:
    handler = Threshold(FULL)
    with pytest.raises(HandlerError, match="Type error: Threshold state machine requires numeric"):
        handler.handle(batch(time=[0], v=["a"]))
    with pytest.raises(HandlerError, match="Key error: Can't get value from column v"):
        handler.handle(batch(time=[0], w=[1]))
    with pytest.raises(HandlerError, match="Key error: No such column: level"):
        handler.handle(batch(time=[0], v=[1], level=[1]))
    assert column(handler.handle(batch(v=[5.0]))[0], "level") == [10]
    with pytest.raises(HandlerError, match="no key time_column_name"):
        handler.handle(batch(v=[50.0]))


def test_each_group_has_a_threshold_by_dispatch() -> None:
    def create() -> Threshold:
        return Threshold(FULL)

    calls = [batch({"h": h}, time=[t], v=[15.0]) for t in (0, 6) for h in "ab"]
    assert [column(create().handle_all(calls)[i], "level") for i in range(4)] == [
        [10], [10], [20], [20]
    ]  # fmt: skip
    together, dispatched = create(), Dispatch(create)
    found = [column(each, "level")[0] for each in dispatched.handle_all([*calls[:3], calls[2]])]
    assert found == [10, 10, 20, 20]
    assert [column(each, "level")[0] for each in together.handle_all(calls[:3])] == [10, 10, 20]


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 4), st.none() | st.integers(0, 60))), st.integers(0, 10))
def test_batches_and_restarts_change_nothing(steps: list[tuple[int, int | None]], cut: int) -> None:
    times = [sum(step for step, _ in steps[: i + 1]) for i in range(len(steps))]
    values = [None if value is None else float(value) for _, value in steps]
    rows = batch(time=times, v=values) if steps else batch(time=[], v=[1.0][:0])
    if not any(value is not None for value in values):
        return
    (whole,) = Threshold(FULL).handle(rows)
    first = Dispatch(lambda: Threshold(FULL))
    before = first.handle(rows.slice(0, cut))
    second = Dispatch(lambda: Threshold(FULL))
    second.load(first.save())
    after = second.handle(rows.slice(cut))
    assert column(before[0], "level") + column(after[0], "level") == column(whole, "level")

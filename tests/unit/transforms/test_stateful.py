"""Python functions with state by key: divisions, timers, expiry and failures."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.core.errors import UserError, flatten_errors
from penstock.plan.model import Plan
from penstock.testing.stateful import StatefulHarness

START = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = "user STRING, n INT, reason STRING"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Sessions:
    """Counts the rows of a user until a pause of ten seconds."""

    def process(self, row: dict[str, Any], state: Any) -> Any:
        if row["n"] == 13:
            if state.value is not None:
                state.value[0] = 99
            state.value = "overwritten"
            state.set_timer(state.time + timedelta(days=9))
            raise ValueError("13")
        state.value = state.value or [0]
        state.value[0] += row["n"]
        state.set_timer(state.time + timedelta(seconds=10))

    def on_timer(self, name: str, state: Any) -> Any:
        yield {"user": state.key["user"], "n": state.value[0], "reason": str(state.time)}
        state.clear()


def sessions(**options: Any) -> StatefulHarness:
    shared = {"schema": COLUMNS, "key": "user", "time": "at", "per": "row"}
    return StatefulHarness(Sessions, **{**shared, **options})


def row(user: str | None, seconds: float | None, n: int = 1) -> dict[str, Any]:
    return {"user": user, "at": None if seconds is None else at(seconds), "n": n}


@pytest.mark.slow
def test_the_division_into_batches_and_restarts_change_nothing() -> None:
    chance = random.Random(5)
    rows, time = [], 0.0
    for _ in range(300):
        time += chance.expovariate(1 / 2)
        rows.append(row(chance.choice("abc"), time, chance.choice([1, 2, 13])))
    results = []
    for size in (1, 7, 300):
        harness, output = sessions(), list[Any]()
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            output += harness.feed(batch)
            output += harness.advance(max(each["at"] for each in batch))
            harness.restart()
        output += harness.advance(at(time + 100))
        ordered = sorted(output, key=lambda each: (each["reason"], each["user"]))
        results.append((ordered, len(harness.errors)))
    assert results[0] == results[1] == results[2]
    assert len(results[0][0]) > 20 and results[0][1] > 50


def test_a_timer_fires_before_the_first_row_after_it_and_once() -> None:
    harness = sessions()
    assert harness.feed([row("a", 0), row("a", 9.999), row("b", 1)]) == []
    assert harness.timers("a") == {"": at(19.999)}
    fired = harness.feed([row("a", 19.999)])
    assert fired == [{"user": "a", "n": 2, "reason": str(at(19.999))}]
    assert harness.value("a") == [1]
    assert [each["user"] for each in harness.advance(at(29.999))] == ["b", "a"]
    assert harness.advance(at(1000)) == [] and harness.value("a") is None


def test_a_failed_row_leaves_the_state_and_its_batch() -> None:
    harness = sessions()
    harness.feed([row("a", 0, 2), row("a", 1, 13), row("b", 1, 13), row("a", 2, 3)])
    assert harness.value("a") == [5] and harness.timers("a") == {"": at(12)}
    assert harness.value("b") is None
    assert [each.reason for each in harness.errors] == ["ValueError: 13"] * 2
    assert harness.errors[0].row == row("a", 1, 13)
    harness.feed([row("a", None), row(None, 3, 4)])
    assert harness.errors[-1].reason == "the event time is null"
    assert harness.value(None) == [4]


def test_a_failed_row_does_not_extend_the_life_of_a_state() -> None:
    harness = sessions(ttl="5s")
    harness.feed([row("a", 0), row("a", 4, 13), row("a", 4.9, 13)])
    harness.advance(at(5))
    assert harness.value("a") is None and harness.timers("a") == {}


def test_a_state_expires_before_the_first_row_after_its_ttl() -> None:
    for divided in (False, True):
        harness = sessions(ttl="5s")
        rows = [row("a", 0), row("a", 4.999), row("a", 9.999), row("b", 8)]
        for part in [[each] for each in rows] if divided else [rows]:
            harness.feed(part)
        assert harness.value("a") == [1] and harness.value("b") == [1]
        harness.advance(at(13))
        assert harness.value("b") is None and harness.value("a") == [1]
        # A timer after the expiry has gone with the state.
        assert harness.advance(at(30)) == []


def test_timers_have_names_and_errors() -> None:
    class Named:
        def process(self, row: dict[str, Any], state: Any) -> None:
            if row["n"] == 0:
                state.set_timer(state.time)
            state.set_timer(at(row["n"]), "x")
            state.set_timer(at(row["n"] + 1), "y")
            state.cancel_timer("gone")

        def on_timer(self, name: str, state: Any) -> Any:
            if name == "y":
                raise RuntimeError("no y")
            state.value = "kept"
            return {"user": name}

    harness = StatefulHarness(Named, schema=COLUMNS, key="user", time="at", per="row")
    harness.feed([row("a", 1, 5), row("a", 2, 9), row("a", 3, 0)])
    assert harness.timers("a") == {"x": at(9), "y": at(10)}
    assert "is not after the time of the call" in harness.errors[0].reason
    assert [each["user"] for each in harness.advance(at(20))] == ["x"]
    assert harness.value("a") == "kept" and harness.timers("a") == {}
    assert harness.errors[-1].reason == "RuntimeError: no y"
    assert harness.errors[-1].row == {"user": "a", "timer": "y", "time": at(10)}


def test_a_function_takes_the_rows_of_a_key() -> None:
    def running(batch: pa.RecordBatch, state: Any) -> Any:
        if 13 in batch.column("n").to_pylist():
            raise SystemExit("13")
        state.value = (state.value or 0) + sum(batch.column("n").to_pylist())
        return [{"user": state.key["user"], "n": state.value}]

    harness = StatefulHarness(running, schema=COLUMNS, key="user")
    rows = [row("a", 0), row("b", 0), row("a", 0, 5), row("c", 0, 13), row("c", 0)]
    assert [(each["user"], each["n"]) for each in harness.feed(rows)] == [("a", 6), ("b", 1)]
    assert [each.reason for each in harness.errors] == ["SystemExit: 13"] * 2
    assert harness.value("c") is None


def test_values_that_cannot_be_stored_or_returned_are_errors() -> None:
    def wrong(row: dict[str, Any], state: Any) -> Any:
        state.value = (lambda: 0) if row["n"] == 1 else "new"
        if row["n"] == 2:
            state.set_timer(at(1000))
        return {"user": "a", "n": "text"} if row["n"] == 3 else {"other": 1}

    harness = StatefulHarness(wrong, schema=COLUMNS, key="user", per="row")
    harness.feed([row("a", 0, n) for n in (1, 2, 3, 4)])
    assert [each.reason.split(":")[0] for each in harness.errors] == [
        "ValueError", "ValueError", "DecodeError", "ValueError",
    ]  # fmt: skip
    assert harness.value("a") is None


def test_the_clock_is_the_time_without_a_column() -> None:
    harness = sessions(time=None, ttl="60s")
    harness.advance(at(0))
    harness.feed([row("a", 500)])
    assert harness.timers("a") == {"": at(10)}
    assert harness.advance(at(9)) == [] and len(harness.advance(at(10))) == 1


@pytest.mark.parametrize("values", [[float("nan")] * 2, [0.0, -0.0], [None, None]])
def test_equal_keys_have_one_state(values: list[Any]) -> None:
    def count(row: dict[str, Any], state: Any) -> None:
        state.value = (state.value or 0) + 1

    harness = StatefulHarness(count, schema="n INT", key="k", input="k DOUBLE", per="row")
    harness.feed([{"k": value} for value in values])
    assert [value for _, value, _ in harness._states.snapshot()] == [2]


PIPELINE = """
sources: {s: {type: memory, rows: [{user: a, n: 1}], schema: "user STRING, n INT"}}
transforms: {t: {type: python, from: s, schema: n INT, %s}}
sinks: {out: {type: blackhole, from: t}}
"""


def plan(directory: Path, options: str) -> Plan:
    (directory / "p.yaml").write_text(PIPELINE % options)
    return app.plan(directory / "p.yaml")


def test_a_decorator_declares_the_state(tmp_path: Path) -> None:
    code = "import penstock\n@penstock.stateful(key=['user'], ttl='1h')\nclass T:\n    pass\n"
    (tmp_path / "mine.py").write_text(code + "raise ValueError('not run')\n")
    found: Any = plan(tmp_path, 'function: "mine:T"').nodes["t"].component
    assert (found.config.state.key, found.config.state.ttl) == (["user"], 3600.0)
    own: Any = plan(tmp_path, 'function: "mine:T", state: {key: n}').nodes["t"].component
    assert own.config.state.key == ["n"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("@stateful(key=1)", "the decorator of T has a wrong option key"),
        ("@stateful(key='a', tll='1h')", "the decorator of T has a wrong option tll"),
        ("@stateful(key=KEY)", "the options of the decorator of T are not literals"),
    ],
)
def test_wrong_decorators(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(f"{code}\nclass T:\n    pass\n")
    with pytest.raises(UserError) as caught:
        plan(tmp_path, 'function: "mine:T"')
    assert message in flatten_errors(caught.value)[0].message

"""Streams of random rows: their division into batches and partitions changes no result."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from penstock.transforms.handlers.transform import _INPUT
from recorded_handlers.streams import HandlerStream, Rows, divide

pytestmark = pytest.mark.slow

WINDOW = {"type": "window", "period": "7s", "every": "3s"}
THRESHOLD = {"type": "threshold", "column": "v", "default": 4, "as": "level",
             "increase": {"factor": 1.5, "duration": "2s"},
             "decrease": {"trigger": 0.3, "factor": 0.5, "duration": "2s"}}  # fmt: skip
DERIVATIVE = {"type": "derivative", "columns": {"d": {"column": "v"}}, "neighbourhood": "4s"}
AGGREGATE = {"type": "aggregate", "columns": [
    {"function": f, "column": "v", "as": f} for f in ("first", "last", "mean", "max")
]}  # fmt: skip
CHAINS: dict[str, list[dict[str, Any]]] = {
    "window": [WINDOW],
    "gaps": [{**WINDOW, "period": "2s", "every": "5s", "fill_period": True}],
    "aggregate": [{"type": "filter", "where": "v >= 1"}, WINDOW,
                  {"type": "group", "by": ["k"]}, AGGREGATE,
                  {"type": "map", "set": {"high": "mean > 4.5"}}],
    "join": [WINDOW, {"type": "join", "on": ["k"], "tolerance": "2s"}],
    "sort": [WINDOW, {"type": "sort", "by": ["k", "v"]}],
    "threshold": [THRESHOLD],
    "dispatch": [{"type": "group", "by": ["k"]}, {"type": "dispatch", "handler": THRESHOLD}],
    "derivative": [DERIVATIVE],
    "all": [DERIVATIVE, THRESHOLD, WINDOW, {"type": "group", "by": ["k"]}, AGGREGATE],
    "dynamic": [{"type": "dynamic_window", "period": "5s", "every": "5s", "every_column": "n",
                 "unit": "s"}, {"type": "sort", "by": ["v"]}],
}  # fmt: skip
SCHEMA = pa.schema([
    ("host", pa.string()), ("time", pa.timestamp("us", "UTC")), ("k", pa.string()),
    ("v", pa.float64()), ("n", pa.int64()), ("id", pa.string()),
])  # fmt: skip


def random_rows(rng: random.Random, count: int) -> pa.RecordBatch:
    """Returns rows mostly in the order of their times, some late, some with nulls."""
    start, second, rows = datetime(1970, 1, 1, tzinfo=UTC), 0.0, []
    for number in range(count):
        second += rng.choice([0, 0, 0.3, 1, 1, 2, 9])
        late = rng.choice([0, 0, 0, 0, 1, 4, 30])
        time = None if rng.random() < 0.04 else start + timedelta(seconds=second - late)
        rows.append({
            "host": rng.choice(["a", "b", None]), "time": time, "k": rng.choice(["x", "y", None]),
            "v": rng.choice([None, 0.0, 1.0, 5.0, 8.0, 9.0]),
            "n": rng.choice([None, 3, 4, 0 if rng.random() < 0.1 else 5]), "id": str(number),
        })  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def options(chain: str) -> dict[str, Any]:
    return {"by": ["host"], "time": "time", "handlers": CHAINS[chain]}


def by_group(rows: Rows) -> dict[object, list[str]]:
    """Returns the rows of each group in order. Groups have no order between them."""
    groups: dict[object, list[str]] = {}
    for row in rows:
        groups.setdefault((row["host"], row["k"]), []).append(repr(row))
    return groups


@pytest.mark.quick(1)
@pytest.mark.parametrize("chain", CHAINS)
def test_divisions(chain: str) -> None:
    for seed in range(3):
        rng = random.Random(f"{chain} {seed}")
        rows = random_rows(rng, 50)
        single = HandlerStream(options(chain), SCHEMA)
        each = [rows.slice(index, 1) for index in range(rows.num_rows)]
        expected = [row for row_ in each for row in single.batch([[row_]])]
        assert expected
        for _ in range(2):
            stream = HandlerStream(options(chain), SCHEMA)
            found = [row for batch in divide(rows, rng) for row in stream.batch(batch)]
            assert by_group(found) == by_group(expected)
            assert sorted(map(repr, stream.rejected)) == sorted(map(repr, single.rejected))


@pytest.mark.quick(1)
@pytest.mark.parametrize("chain", ["window", "aggregate", "join", "all"])
def test_inputs_are_merged_by_time(chain: str) -> None:
    schema = SCHEMA.append(pa.field(_INPUT, pa.int64()))
    for seed in range(2):
        rng = random.Random(f"{chain} {seed} inputs")
        inputs = [random_rows(rng, 30), random_rows(rng, 30)]
        expected = None
        for _ in range(3):
            stream = HandlerStream(options(chain), SCHEMA, inputs=2)
            found: Rows = []
            queues = [
                [batch for parts in divide(each, rng) for part in parts for batch in part]
                for each in inputs
            ]
            while any(queues):
                number = rng.choice([n for n, queue in enumerate(queues) if queue])
                batch = queues[number].pop(0)
                numbers = pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows)
                rows = pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
                found += stream.batch([[rows]])
            expected = by_group(found) if expected is None else expected
            assert by_group(found) == expected and any(expected.values())


def test_a_failing_row_is_rejected_alone() -> None:
    chain = [{"type": "map", "set": {"x": "10 / n"}}, {"type": "filter", "where": "x > 1"}]
    stream = HandlerStream({"batch": ["k"], "handlers": chain}, SCHEMA)
    values = {"k": list("xxxyz"), "n": [5, 0, 20, 0, 1], "id": list("abcde")}
    columns = [pa.array(values.get(f.name, [None] * 5), f.type) for f in SCHEMA]
    rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    assert [(row["id"], row["x"]) for row in stream.batch([[rows]])] == [("a", 2)]
    assert [(row["id"], code) for row, code in stream.rejected] == [
        ("b", "handler-failed"), ("d", "handler-failed"),
    ]  # fmt: skip

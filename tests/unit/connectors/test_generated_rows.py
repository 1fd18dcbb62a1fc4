"""Generated rows: the same by seed and number, however they are read."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from option_errors import Case, assert_option_error
from penstock.connectors.generate import GenerateSource, GenerateSourceConfig
from penstock.sdk import Context, Read
from penstock.sdk.synthetic import source as module

FIELDS: dict[str, Any] = {
    "id": "sequence",
    "k": {"type": "sequence", "start": 100, "step": -2},
    "n": {"type": "integer", "min": -5, "max": 5},
    "all": {"type": "integer", "min": -(2**63), "max": 2**63 - 1},
    "x": {"type": "number", "min": 10, "max": 20, "decimals": 2},
    "g": {"type": "normal", "mean": 50, "deviation": 2},
    "b": {"type": "bool", "true": 0.2},
    "c": {"type": "choice", "of": ["red", "green"], "weights": [3, 1]},
    "ci": {"type": "choice", "of": [1, 2, None]},
    "one": {"type": "constant", "value": {"a": 1}},
    "at": {"type": "timestamp", "start_time": "2024-01-01T00:00:00Z", "step": "1s", "jitter": "5s"},
    "u": "uuid",
    "w": "word",
    "name": "name",
    "s": {"type": "sentence", "min": 2, "max": 4},
    "maybe": {"type": "integer", "nulls": 0.5},
    "deep": {
        "type": "struct",
        "fields": {"l": {"type": "list", "of": "word", "max": 2}, "n": "integer"},
    },
}


def source(state: Any = None, **options: Any) -> GenerateSource:
    return GenerateSource(GenerateSourceConfig.model_validate(options), Context())


def rows(of: GenerateSource, start: int, stop: int, read: Read | None = None) -> list[Any]:
    first = {**of.initial_offset(), "rows": start, "time": 0}
    return [
        row
        for part in of.partitions(first, {**first, "rows": stop})
        for batch in of.read(part, read or Read())
        for row in batch.to_pylist()
    ]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(start=st.integers(0, 2**36), count=st.integers(1, 50), parts=st.integers(1, 7))
def test_a_row_depends_on_its_number_alone(start: int, count: int, parts: int) -> None:
    whole = rows(source(fields=FIELDS), start, start + count)
    split = source(fields=FIELDS, partitions=parts)
    middle = start + count // 2
    assert rows(split, start, middle) + rows(split, middle, start + count) == whole


def test_batches_do_not_matter(monkeypatch: Any) -> None:
    whole = rows(source(fields=FIELDS), 0, 100)
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 7)
    assert rows(source(fields=FIELDS), 0, 100) == whole


def test_another_seed_other_rows() -> None:
    assert rows(source(fields=FIELDS, seed=1), 0, 10) != rows(source(fields=FIELDS), 0, 10)


@pytest.mark.slow
def test_values() -> None:
    table = pa.Table.from_pylist(rows(source(fields=FIELDS), 0, 20_000)).to_pandas()
    assert table.id.tolist() == list(range(20_000))
    assert table.k[:3].tolist() == [100, 98, 96]
    assert set(table.n) == set(range(-5, 6))
    assert table["all"].min() < -(2**62) and table["all"].max() > 2**62
    assert table.x.between(10, 20).all() and (table.x * 100 % 1).abs().min() < 1e-6
    assert abs(table.g.mean() - 50) < 0.2 and abs(table.g.std() - 2) < 0.1
    assert abs(table.b.mean() - 0.2) < 0.02
    assert abs((table.c == "red").mean() - 0.75) < 0.02
    assert abs(table.maybe.isna().mean() - 0.5) < 0.02
    assert table.u.is_unique and table.u.str.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4.*").all()
    assert set(table.s.str.split().str.len()) == {2, 3, 4}
    assert set(table.deep.map(lambda each: len(each["l"]))) == {0, 1, 2}
    late = table["at"] - dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    behind = table.id - late.dt.total_seconds()
    assert behind.between(0, 5).all()


def test_the_schema_is_what_is_delivered() -> None:
    made = source(fields=FIELDS)
    start = {**made.initial_offset(), "rows": 0}
    (part,) = made.partitions(start, {**start, "rows": 10})
    (batch,) = made.read(part, Read())
    assert batch.schema == made.schema()
    made.columns = pa.schema([("x", pa.float32()), ("id", pa.int32()), ("none", pa.string())])
    (batch,) = made.read(part, Read(metadata=("position",)))
    assert batch.schema.names == ["x", "id", "none", "position"]
    assert batch.schema.types[:3] == made.columns.types


def test_unused_columns_are_not_generated() -> None:
    got = rows(source(fields=FIELDS), 0, 3, Read(columns=frozenset(["id"])))
    assert [(row["id"], row["u"]) for row in got] == [(0, None), (1, None), (2, None)]


def test_metadata_is_the_number_of_a_row_and_when_it_was_due() -> None:
    made = source(fields={"at": "timestamp"}, rate=4)
    got = rows(made, 6, 9, Read(metadata=("time", "position")))
    assert [row["position"] for row in got] == [6, 7, 8]
    assert [row["time"].timestamp() for row in got] == [1.5, 1.75, 2.0]
    assert all(row["at"] == row["time"] for row in got)


def test_a_sample_is_cycled() -> None:
    made = source(sample=[{"a": 1, "b": "x"}, {"a": 2}], fields={"id": "sequence", "b": "word"})
    got = rows(made, 1, 4)
    assert [(row["a"], row["id"]) for row in got] == [(2, 1), (1, 2), (2, 3)]
    assert made.schema().names == ["a", "b", "id"]


def test_bounded() -> None:
    made = source(fields={"id": "sequence"}, rows=250, max_records=100)
    assert made.is_bounded()
    at, sizes = made.initial_offset(), []
    end = made.latest_offset(at)
    while at != end:
        following = made.limit_batch(at, end)
        sizes.append(following["rows"] - at["rows"])
        at = following
    assert sizes == [100, 100, 50]
    assert made.latest_offset(at) == at


def test_a_rate(monkeypatch: Any) -> None:
    clock = [1_000_000_000_000_000]
    monkeypatch.setattr(module, "now_micros", lambda: clock[0])
    made = source(fields={"at": "timestamp"}, rate=10)
    at = made.initial_offset()
    assert made.latest_offset(at) == at
    clock[0] += 1_000_000
    at = json.loads(json.dumps(made.latest_offset(at)))
    assert at["rows"] == 10
    clock[0] += 3600_000_000
    again = source(fields={"at": "timestamp"}, rate=10)
    assert again.latest_offset(at) == at
    clock[0] += 500_000
    end = again.latest_offset(at)
    assert end["rows"] == 15
    (part,) = again.partitions(at, end)
    (batch,) = again.read(part, Read())
    last = batch.column("at")[-1].as_py().timestamp()
    assert abs(last - clock[0] / 1e6) < 0.2


def test_a_rate_of_rows_that_end(monkeypatch: Any) -> None:
    clock = [1_000_000_000_000_000]
    monkeypatch.setattr(module, "now_micros", lambda: clock[0])
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    made = source(fields={"at": "timestamp"}, rate=10, rows=25)
    at, end = made.initial_offset(), made.latest_offset(made.initial_offset())
    assert end["rows"] == 25
    while at != end:
        at = made.limit_batch(at, end)
        clock[0] += round(slept[-1] * 1e6)
    assert slept == [1, 1, 0.5]


@pytest.mark.parametrize(
    "case",
    [
        ({}, "", "expected fields, sample, or both"),
        ({"fields": {"x": "sequense"}}, "fields.x", "expected tags: 'sequence'"),
        (
            {"fields": {"x": {"type": "integer", "min": 3, "max": 2}}},
            "fields.x.integer", "expected min to be at most max",
        ),
        (
            {"fields": {"x": {"type": "choice", "of": []}}},
            "fields.x.choice.of", "at least 1 item",
        ),
        (
            {"fields": {"x": {"type": "choice", "of": [1], "weights": [1, 2]}}},
            "fields.x.choice", "expected one weight for each value",
        ),
        ({"fields": {"x": {"type": "word", "mn": 1}}}, "fields.x.word.mn", "Extra inputs"),
    ],
)  # fmt: skip
def test_invalid_options(case: Case) -> None:
    assert_option_error(GenerateSourceConfig, {}, case)


def test_simple_fields_are_fast() -> None:
    made = source(fields={"id": "sequence", "n": "integer", "x": "number"}, max_records=10**6)
    start = time.perf_counter()
    first = made.initial_offset()
    for part in made.partitions(first, {**first, "rows": 10**6}):
        for _ in made.read(part, Read()):
            pass
    assert time.perf_counter() - start < 5


def test_nulls_do_not_depend_on_the_values() -> None:
    fields = {"n": {"type": "number", "nulls": 0.5}}
    values = [row["n"] for row in rows(source(fields=fields), 0, 400)]
    known = [value for value in values if value is not None]
    assert 150 < len(known) < 250
    assert min(known) < 0.1 and max(known) > 0.9

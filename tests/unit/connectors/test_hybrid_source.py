"""Sources in phases, read by hand with the offsets of a pipeline."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.connectors.hybrid import HybridSource
from penstock.connectors.hybrid.bounds import last_positions
from penstock.connectors.hybrid.columns import common_columns
from penstock.connectors.hybrid.config import Handover
from penstock.core.errors import PlanError, flatten_errors
from penstock.sdk import Offset, Read

NODE = """\
connections:
  lake: {{type: files, path: old/*.csv}}
sources:
  orders:
    type: hybrid
{options}
    phases:
{phases}
sinks:
  out: {{type: blackhole, from: orders}}
"""
OLD = "{type: files, path: old/*.csv, order: name, max_files: 1}"
NEW = "{type: files, path: new/*.jsonl, order: name, max_files: 1, watch: true, min_age: 0s}"
SCHEMA = "schema: id LONG, city STRING"
Make = Callable[..., HybridSource]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Returns a source as the planner creates it for a run of the same pipeline."""

    def make(*phases: str, options: str = SCHEMA) -> HybridSource:
        text = NODE.format(
            options="".join(f"    {line}\n" for line in options.splitlines()),
            phases="\n".join(f"      - {phase}" for phase in phases or (OLD, NEW)),
        )
        path = tmp_path / "p.yaml"
        path.write_text(text)
        source = app.plan([path]).nodes["orders"].source
        assert isinstance(source, HybridSource)
        return source

    return make


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str], None]:
    def put(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    return put


def batches(source: HybridSource, start: Offset | None = None) -> list[tuple[Offset, list[Any]]]:
    """Returns the end and the rows of each batch up to the latest offset."""
    offset = source.initial_offset() if start is None else start
    found = []
    while (latest := source.latest_offset(offset)) != offset:
        end = source.limit_batch(offset, latest)
        found.append((end, rows(source, offset, end)))
        offset = json.loads(json.dumps(end))
    return found


def rows(source: HybridSource, start: Offset, end: Offset, **read: Any) -> list[dict[str, Any]]:
    """Reads the rows of a range in copies of the source, as tasks do."""
    return [row for batch in read_range(source, start, end, Read(**read)) for row in batch]


def read_range(
    source: HybridSource, start: Offset, end: Offset, read: Read
) -> Iterable[list[dict[str, Any]]]:
    for partition in source.partitions(start, end):
        copy = pickle.loads(pickle.dumps(source))
        for batch in copy.read(pickle.loads(pickle.dumps(partition)), read):
            assert batch.schema.names == [*(source.columns or ()).names, *read.metadata]
            yield batch.to_pylist()


def order(number: int, city: str = "Oslo") -> dict[str, Any]:
    return {"id": number, "city": city}


def test_phases_follow_one_another(make: Make, put: Callable[..., None]) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n2,Oslo\n")
    put("old/b.csv", "id,city\n3,Oslo\n")
    put("new/a.jsonl", '{"id":4,"city":"Oslo"}\n')
    found = batches(make())
    assert [rows for _, rows in found] == [[order(1), order(2)], [order(3)], [order(4)]]


@pytest.mark.parametrize("count", range(4))
def test_a_run_resumes_in_each_phase(make: Make, put: Callable[..., None], count: int) -> None:
    for number in range(3):
        put(f"old/{number}.csv", f"id,city\n{number},Oslo\n")
    put("new/a.jsonl", '{"id":3,"city":"Oslo"}\n')
    first = make()
    ends = [first.initial_offset(), *(end for end, _ in batches(first))]
    put("new/b.jsonl", '{"id":4,"city":"Oslo"}\n')
    found = [row for _, batch in batches(make(), ends[count]) for row in batch]
    assert found == [order(number) for number in range(count, 5)]


def test_bounded_phases_end_where_they_ended_at_the_first_start(
    make: Make, put: Callable[..., None]
) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n")
    put("new/a.jsonl", '{"id":2,"city":"Oslo"}\n')
    start = make().initial_offset()
    put("old/b.csv", "id,city\n9,Late\n")
    other = make()
    assert other.initial_offset() == start
    assert [row for _, batch in batches(other, start) for row in batch] == [order(1), order(2)]


def test_a_whole_range_has_all_phases(make: Make, put: Callable[..., None]) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n")
    put("new/a.jsonl", '{"id":2,"city":"Oslo"}\n')
    source = make()
    start = source.initial_offset()
    assert rows(source, start, source.latest_offset(start)) == [order(1), order(2)]
    assert source.lag(start, source.latest_offset(start)) == len(b"id,city\n1,Oslo\n") + 23


def test_bad_records_have_the_number_of_their_phase(make: Make, put: Callable[..., None]) -> None:
    put("old/a.csv", "id,city\nx,Oslo\n")
    put("new/a.jsonl", '{"id":1,"city":"Oslo"}\n{"id":"y"}\n')
    source = make()
    read, start = Read(metadata=("path", "origin", "position")), source.initial_offset()
    found = [
        row for rows in read_range(source, start, source.latest_offset(start), read) for row in rows
    ]
    assert [(row["id"], row["origin"][:2], row["position"]) for row in found] == [(1, "2:", 1)]
    first, second = read.bad
    assert (first.origin[:2], first.position, first.header) == ("1:", 2, b"id,city")
    assert (second.origin[:2], second.position, second.header) == ("2:", 2, None)
    assert second.origin.endswith("new/a.jsonl")
    again = source.decode_with_header(b"7,Oslo", first.origin, 2, b"id,city")
    assert again.to_pylist() == [order(7)]
    assert source.decode(b'{"id":8,"city":"Rome"}', second.origin, 2).to_pylist() == [
        order(8, "Rome")
    ]
    assert source.record_metadata(second.origin, 2)["path"] == second.origin[2:]


def test_rows_of_phases_without_operations_are_inserts(
    make: Make, put: Callable[..., None]
) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n2,Rome\n")
    changes = [
        {"before": order(1), "after": order(1, "Kyiv"), "op": "u"},
        {"before": order(2, "Rome"), "after": None, "op": "d"},
    ]
    put("new/a.jsonl", "".join(f"{json.dumps(change)}\n" for change in changes))
    last = NEW.replace("watch", "format: debezium_json, watch")
    source = make(OLD, last, options=f"{SCHEMA}\nprimary_key: id")
    found = [(row["id"], row["city"], row["_op"]) for _, b in batches(source) for row in b]
    assert found == [
        (1, "Oslo", "i"),
        (2, "Rome", "i"),
        (1, "Oslo", "ub"),
        (1, "Kyiv", "u"),
        (2, "Rome", "d"),
    ]
    (bad,) = source.decode_with_header(b"5,Oslo", "1:old/a.csv", 2, b"id,city").to_pylist()
    assert bad == {**order(5), "_op": "i"}


def test_columns_come_from_the_phases(make: Make, put: Callable[..., None]) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n")
    put("new/a.jsonl", '{"city":"Oslo","id":4}\n')
    source = make(options="")
    assert source.schema() is None and source.is_bounded() is False
    assert (source.infer_schema() or pa.schema([])).names == ["id", "city"]
    put("new/a.jsonl", '{"city":"Oslo","place":4}\n')
    with pytest.raises(PlanError, match="different columns: id, place") as raised:
        make(options="").infer_schema()
    assert raised.value.code == "different-columns"
    assert raised.value.hint == "Set columns_of: last, or declare the columns with schema."


def test_types_hold_the_values_of_all_phases(make: Make, put: Callable[..., None]) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n")
    put("new/a.jsonl", '{"id":4.5,"city":"Oslo"}\n')
    message = 'different types of column "id": BIGINT and DOUBLE'
    with pytest.raises(PlanError, match=message):
        make(options="").infer_schema()
    small, large = (pa.schema([pa.field("id", type_, nullable=False), ("t", pa.string())])
                    for type_ in (pa.int32(), pa.int64()))  # fmt: skip
    assert common_columns(small, large) == common_columns(large, small) == large
    at = [pa.schema([("at", pa.timestamp("us", zone))]) for zone in (None, "UTC")]
    with pytest.raises(PlanError, match='"at": TIMESTAMP_NTZ and TIMESTAMP'):
        common_columns(*at)


@pytest.mark.parametrize(
    ("phases", "options", "errors"),
    [
        (
            (NEW, OLD.replace("max_files", "max_file")),
            SCHEMA,
            {
                "unbounded-phase": 'phase 1 of "orders" does not end; only the last phase may be '
                "unbounded",
                "unknown-option": 'phase 2 of "orders" (type: files) has no option "max_file"',
            },
        ),
        (
            (OLD, "{type: hybrid, phases: [{type: memory}, {type: memory}]}"),
            SCHEMA,
            {"invalid-option": "a source of type hybrid cannot be a phase"},
        ),
        (
            ("{type: http, listen: 127.0.0.1:0}", NEW),
            SCHEMA,
            {
                "unbounded-phase": 'phase 1 of "orders" does not end; only the last phase may be '
                "unbounded",
            },
        ),
        (
            ("{type: postgres, url: 'postgresql://h/d', table: t, changes: true}", NEW),
            SCHEMA,
            {
                "unbounded-phase": 'phase 1 of "orders" does not end; only the last phase may be '
                "unbounded",
            },
        ),
        (
            (OLD, "{type: http, listen: 127.0.0.1:0}"),
            f"{SCHEMA}\nskip_last: true",
            {
                "invalid-option": "skip_last requires a last phase that keeps its records, and "
                "this one receives messages",
            },
        ),
        ((OLD, "{path: x}"), SCHEMA, {"missing-option": 'phase 2 of "orders" needs "type"'}),
        (
            (OLD, OLD),
            f"{SCHEMA}\nhandover: {{partition: id, offset: id}}",
            {
                "invalid-option": "handover requires a last phase of type kafka with one topic",
            },
        ),
        (
            (OLD, '{type: kafka, brokers: "localhost:1", topic: t}'),
            f"{SCHEMA}\nhandover: {{partition: idd, offset: city}}",
            {
                "unknown-column": 'handover.partition: unknown column "idd"',
                "wrong-type": 'handover.offset: column "city" has the type STRING',
            },
        ),
    ],
)
def test_invalid_options(
    make: Make, phases: tuple[str, ...], options: str, errors: Mapping[str, str]
) -> None:
    with pytest.raises(Exception) as raised:
        make(*phases, options=options)
    found = flatten_errors(raised.value)
    assert {error.code: error.message for error in found} == errors
    assert all(error.where is not None for error in found)


def test_phases_use_connections(make: Make, put: Callable[..., None]) -> None:
    put("old/a.csv", "id,city\n1,Oslo\n")
    put("new/a.jsonl", '{"id":4,"city":"Oslo"}\n')
    found = batches(make("{connection: lake, max_files: 1}", NEW))
    assert [rows for _, rows in found] == [[order(1)], [order(4)]]


def test_the_last_position_of_each_partition() -> None:
    parts = [
        {"p": [0, 1, None], "o": [4, 2, 9]},
        {"p": [1, 0, 1], "o": [7, 1, None]},
    ]
    batches = [pa.RecordBatch.from_pydict(part) for part in parts]
    assert last_positions(batches, Handover(partition="p", offset="o")) == {0: 4, 1: 7}


def test_a_source_with_other_state(make: Make, put: Callable[..., None], tmp_path: Path) -> None:
    """As for a sample of the rows, which leaves the state of the pipeline as it is."""
    put("old/a.csv", "id,city\n1,Oslo\n")
    put("new/a.jsonl", '{"id":4,"city":"Oslo"}\n')
    source = make(OLD, NEW.replace("watch", "format: debezium_json, watch"), options=SCHEMA)
    other = source.with_state(tmp_path / "other")
    assert [row["_op"] for _, rows in batches(other) for row in rows] == ["i"]
    assert {path.name for path in (tmp_path / "other").iterdir()} >= {"bounds.json", "phases"}
    assert not (tmp_path / ".penstock").exists()

"""Places of the rows on which SQL fails: the files and lines, or partitions and offsets."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from kafka_records import put
from pipelines import Workspace, dump
from pyspark.sql import SparkSession

from penstock import app
from penstock.control import PipelineControl
from penstock.core.errors import Transient
from penstock.engine.failures.placed_rows import PlacedRows
from penstock.plan.model import Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.stop import Stopped
from servers.kafka import Kafka

pytestmark = pytest.mark.spark

DIVIDED = """\
sources:
  raw:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 2
    schema: id LONG, n INT, text STRING, at TIMESTAMP, ratio DOUBLE
transforms:
  positive: {type: filter, from: raw, where: "100 / n > 0"}
  parsed: {type: sql, sql: "SELECT id, CAST(text AS INT) AS t FROM positive"}
  inverse: {type: map, from: parsed, set: {inverse: "1 / (t - 5)"}}
sinks:
  out: {type: memory, name: out, from: inverse}
"""


def row(id_: int, n: int = 1, text: str = "1") -> str:
    return dump({"id": id_, "n": n, "text": text, "at": "2026-03-01T10:00:00Z", "ratio": 0.5})


def places(workspace: Workspace) -> Counter[tuple[str, str | None, int | None]]:
    """Returns the number of letters by node, file name and position."""
    return Counter(
        (each["node"], each["origin"] and Path(each["origin"]).name, each["position"])
        for each in workspace.dead_letters()
    )


def test_letters_of_several_transforms_and_files_have_their_file_and_line(
    workspace: Workspace,
) -> None:
    workspace.put("in/a.jsonl", [row(1), row(2, n=0), row(3, text="x"), row(4), row(2, n=0)])
    workspace.put("in/b.jsonl", [row(2, n=0), row(5, text="5"), row(6)])
    workspace.put("in/c.jsonl", [row(7), "", row(8, text="y"), row(2, n=0)])
    large = [row(1000) for _ in range(11_000)]
    large[10_776] = row(777, n=0)
    workspace.put("in/d.jsonl", large)

    workspace.run(DIVIDED)

    assert places(workspace) == {
        ("positive", "a.jsonl", 2): 1,
        ("positive", "a.jsonl", 5): 1,
        ("positive", "b.jsonl", 1): 1,
        ("positive", "c.jsonl", 4): 1,
        ("parsed", "a.jsonl", 3): 1,
        ("parsed", "c.jsonl", 3): 1,
        ("inverse", "b.jsonl", 2): 1,
        ("positive", "d.jsonl", 10_777): 1,
    }
    assert sorted(workspace.result()["id"]) == [1, 4, 6, 7, *[1000] * 10_999]


KINDS = """\
sources:
  raw:
    type: files
    path: in/*.csv
    schema: id LONG, tags STRING, price STRING
  names: {type: files, path: names.jsonl, static: true, schema: "id LONG, name STRING"}
transforms:
  named:
    type: sql
    sql: SELECT raw.*, names.name FROM raw LEFT JOIN names ON raw.id = names.id
  tags: {type: sql, sql: "SELECT id, name, price, explode(split(tags, ' ')) AS tag FROM named"}
  priced: {type: sql, sql: "SELECT id, name, CAST(tag AS INT) + CAST(price AS INT) AS n FROM tags"}
  once: {type: sql, sql: "SELECT DISTINCT id, name, n FROM priced"}
  inverse: {type: sql, sql: "SELECT id, 1 / (n - 100) AS inverse FROM once"}
sinks:
  out: {type: memory, from: inverse}
"""


def test_rows_are_followed_through_joins_and_generators_and_not_through_groups(
    workspace: Workspace,
) -> None:
    workspace.put("names.jsonl", ['{"id": 1, "name": "one"}', '{"id": 2, "name": "two"}'])
    workspace.put("in/a.csv", ["id,tags,price", "1,1 x 3,1", "2,1 2,1", "3,99 x,1"])

    workspace.run(KINDS)

    assert places(workspace) == {
        ("priced", "a.csv", 2): 1,
        ("priced", "a.csv", 4): 1,
        ("inverse", None, None): 1,
    }


WINDOWS = """\
sources:
  raw:
    type: files
    path: in/*.jsonl
    order: name
    max_files: 1
    schema: id LONG, n INT, text STRING, at TIMESTAMP, ratio DOUBLE
transforms:
  parsed: {type: sql, sql: "SELECT id, n, CAST(text AS INT) AS t, at FROM raw"}
  timed:
    type: sql
    sql: SELECT id, 10 / n AS q, t, at FROM parsed
    watermark: {column: at, delay: 1 minute}
  counts:
    type: sql
    sql: |
      SELECT window.start, count(*) AS rows, sum(1 / t) AS s
      FROM timed GROUP BY window(at, '5 minutes')
sinks:
  out: {type: memory, from: counts}
"""


def test_rows_above_a_window_have_places_in_runs_with_and_without_checks(
    workspace: Workspace,
) -> None:
    workspace.put("in/a.jsonl", [row(1), row(2, text="x"), row(3, n=0), row(2, text="x")])
    workspace.run(WINDOWS, until="caught_up")
    first = workspace.dead_letters()
    workspace.put("in/b.jsonl", [row(4), row(2, text="x"), row(5, text="0")])
    workspace.run(WINDOWS)

    assert places(workspace) == {
        ("parsed", "a.jsonl", 2): 1,
        ("parsed", "a.jsonl", 4): 1,
        ("parsed", "b.jsonl", 2): 1,
        ("timed", "a.jsonl", 3): 1,
        ("counts", "b.jsonl", 3): 1,
    }
    assert workspace.dead_letters()[: len(first)] == first


KINDS_OF_FILES = """\
sources:
  table:
    type: files
    path: table/*.parquet
    schema: id LONG, text STRING, unused STRING
  lines: {type: files, path: lines/*.log.gz}
transforms:
  parsed: {type: sql, sql: "SELECT id, CAST(text AS INT) AS n FROM table WHERE id > 1"}
  checked: {type: sql, sql: "SELECT plus_one(value) AS n FROM lines"}
functions:
  plus_one:
    args: {value: STRING}
    returns: BIGINT
    code: |
      def plus_one(value):
          return int(value) + 1
sinks:
  numbers: {type: memory, from: parsed}
  values: {type: memory, from: checked}
"""


def test_kinds_of_files_and_rows_that_are_bisected(workspace: Workspace) -> None:
    rows = {"id": [1, 2, 3, 4], "text": ["x", "y", "3", "y"], "unused": ["a", "b", "c", "d"]}
    for folder in ("table", "lines"):
        (workspace.root / folder).mkdir()
    pl.DataFrame(rows).write_parquet(workspace.root / "table/t.parquet")
    with gzip.open(workspace.root / "lines/l.log.gz", "wt") as file:
        file.write("1\n\nz\n3\nz\n")

    workspace.run(KINDS_OF_FILES)

    assert places(workspace) == {
        ("parsed", "t.parquet", 2): 1,
        ("parsed", "t.parquet", 4): 1,
        ("checked", "l.log.gz", 3): 1,
        ("checked", "l.log.gz", 5): 1,
    }


def test_a_batch_that_is_repeated_and_a_replay_keep_ids_and_places(
    workspace: Workspace, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.put("in/a.jsonl", [row(1), row(2, n=0), row(2, n=0)])
    interrupted: list[int] = []

    def interrupt(self: BatchEvents, query: Query, number: int) -> None:
        interrupted.append(number)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(BatchEvents, "on_end", interrupt)
        workspace.run(DIVIDED)
    assert interrupted and workspace.dead_letters() == []
    workspace.run(DIVIDED)
    before, path = workspace.dead_letters(), workspace.root / workspace.file
    assert places(workspace) == {("positive", "a.jsonl", 2): 1, ("positive", "a.jsonl", 3): 1}

    result = PipelineControl.of(app.plan(path)).replay(spark=penstock_spark.newSession())
    assert (result.replayed, result.failed) == (0, 2)
    assert [{**each, "attempt": 1} for each in workspace.dead_letters()] == before
    path = workspace.write(DIVIDED.replace("100 / n", "100 / (n + 1)"))
    result = PipelineControl.of(app.plan(path)).replay(spark=penstock_spark.newSession())
    assert (result.replayed, workspace.dead_letters()) == (2, [])
    assert sorted(workspace.result()["id"]) == [1, 2, 2]


def test_a_source_that_cannot_be_read_again_leaves_letters_without_places(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.put("in/a.jsonl", [row(1), row(2, n=0)])

    def fail(self: PlacedRows, *_: object) -> None:
        raise Transient("the source is gone", code="unreachable")

    monkeypatch.setattr(PlacedRows, "schema", fail)
    workspace.run(DIVIDED)
    assert places(workspace) == {("positive", None, None): 1}
    assert list(workspace.result()["id"]) == [1]


TOPIC = """\
sources:
  raw:
    type: kafka
    brokers: ADDRESS
    topic: TOPIC
    format: {type: json, framing: lines}
    schema: id LONG, n INT
    max_records: 3
transforms:
  inverse: {type: sql, sql: "SELECT id, 1 / n AS inverse FROM raw"}
sinks:
  out: {type: memory, from: inverse}
"""


def test_records_of_a_topic_have_their_partition_and_offset(
    workspace: Workspace, kafka: Kafka
) -> None:
    topic = kafka.create_topic(partitions=2)
    bad, good = dump({"id": 1, "n": 0}), dump({"id": 2, "n": 1})
    lines = {
        0: [good, f"{bad}\n{good}\n{bad}", "not json", bad, good],
        1: [bad, good, good, good, bad],
    }
    for partition, values in lines.items():
        put(kafka, topic, *(value.encode() for value in values), partition=partition)
    text = TOPIC.replace("ADDRESS", kafka.address).replace("TOPIC", topic)

    workspace.run(text, until="caught_up")

    assert places(workspace) == {
        ("raw", f"{topic}:0", 2): 1,
        ("inverse", f"{topic}:0", 1): 2,
        ("inverse", f"{topic}:0", 3): 1,
        ("inverse", f"{topic}:1", 0): 1,
        ("inverse", f"{topic}:1", 4): 1,
    }


TIMED = """\
sources:
  raw:
    type: files
    path: in/*.jsonl
    schema: id LONG, n INT, text STRING, at STRING, ratio DOUBLE
    watermark: {column: seen, expression: to_timestamp(at), delay: 1 minute}
transforms:
  inverse: {type: sql, sql: "SELECT id, seen, 1 / n AS inverse FROM raw"}
  counts:
    type: sql
    sql: SELECT window.start, count(*) AS rows FROM inverse GROUP BY window(seen, '5 minutes')
sinks:
  out: {type: memory, from: counts}
"""


def test_rows_whose_event_time_is_computed_have_places(workspace: Workspace) -> None:
    lines = [row(1), row(2).replace("2026-", "in "), row(3, n=0), row(4)]
    workspace.put("in/a.jsonl", lines)
    workspace.run(TIMED)
    assert places(workspace) == {("raw", "a.jsonl", 2): 1, ("inverse", "a.jsonl", 3): 1}
    assert list(workspace.result()["rows"]) == [2]

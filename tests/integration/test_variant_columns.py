"""VARIANT columns: written, shown and replayed as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from command_line import CommandLine

pytestmark = pytest.mark.spark

PIPELINE = """
name: events
sources:
  events: {type: files, path: in.jsonl, schema: "id BIGINT, text STRING"}
transforms:
  parsed:
    type: sql
    sql: |
      SELECT id, parse_json(text) AS v, named_struct('a', parse_json(text), 'b', id) AS s,
             array(parse_json(text)) AS l, map('k', parse_json(text)) AS m
      FROM events
sinks:
  lines: {type: files, from: parsed, path: lines}
  tables: {type: files, from: parsed, path: tables, format: parquet}
"""
VALUES: list[Any] = [{"a": [1, "x", None]}, 2.5, "t", None]


@pytest.fixture
def events(tmp_path: Path, cli: CommandLine) -> Callable[..., Any]:
    rows = [{"id": id_, "text": json.dumps(value)} for id_, value in enumerate(VALUES)]
    rows.append({"id": len(VALUES), "text": None})
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "events.yaml").write_text(PIPELINE)
    return lambda *words: cli(tmp_path, *words)


def test_variants_are_json(events: Callable[..., Any], tmp_path: Path) -> None:
    done = events("run", "events.yaml")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "lines").glob("*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row.get("v") for row in rows] == [*VALUES, None]
    assert rows[0]["s"] == {"a": VALUES[0], "b": 0}
    assert rows[0]["l"] == [VALUES[0]] and rows[0]["m"] == {"k": VALUES[0]}
    (path,) = (tmp_path / "tables").glob("*.parquet")
    table = parquet.read_table(path)
    assert table.column("v").to_pylist() == ['{"a":[1,"x",null]}', "2.5", '"t"', "null", None]
    assert table.column("s").to_pylist()[1] == {"a": "2.5", "b": 1}

    shown = json.loads(events("inspect", "events.yaml", "parsed", "--json").stdout)
    assert [row["v"] for row in shown["rows"]] == [*VALUES, None]
    assert {"name": "v", "type": "VARIANT"} in shown["columns"]
    text = events("inspect", "events.yaml", "parsed").stdout
    assert '{"a":[1,"x",null]}  {"a": {"a":[1,"x",null]}, "b": 0}' in text


def test_dead_letter_of_a_variant_is_replayed(events: Callable[..., Any], tmp_path: Path) -> None:
    long = PIPELINE.replace("path: lines", "path: lines, partition_by: [name]")
    long = long.replace("SELECT id,", "SELECT id, repeat('x', 999) AS name,")
    (tmp_path / "events.yaml").write_text(long)
    assert events("run", "events.yaml").returncode == 0
    short = long.replace(", partition_by: [name]", "")
    (tmp_path / "events.yaml").write_text(short)
    done = events("dead", "replay", "events.yaml")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "lines").glob("*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row.get("v") for row in rows] == [*VALUES, None]
    assert rows[0]["s"] == {"a": VALUES[0], "b": 0} and rows[0]["m"] == {"k": VALUES[0]}

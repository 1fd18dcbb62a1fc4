"""Files of ArkFlow from end to end: several streams, failures, windows, files and tables."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

STREAMS = """\
streams:
  - id: failing
    input:
      type: memory
      messages: ['{"sensor": "a", "value": 10}', 'no json', '{"sensor": "b", "value": 2.5}']
    pipeline:
      thread_num: 4
      processors:
        - type: json_to_arrow
        - {type: sql, query: "SELECT sensor, value / 2, 'failing' AS s FROM flow WHERE value > 2"}
    output: {type: stdout}
    error_output: {type: stdout}
  - id: generated
    input: {type: generate, context: '{"v": 1}', interval: 1ms, batch_size: 2, count: 5}
    pipeline:
      processors:
        - type: json_to_arrow
        - {type: sql, query: "SELECT sum(v) AS generated FROM flow"}
    output: {type: stdout}
  - id: joined
    input:
      type: multiple_inputs
      inputs:
        - {type: memory, name: users, messages: ['{"id": 1, "name": "a"}', '{"id": 2}']}
        - {type: memory, name: orders, messages: ['{"id": 1, "x": 5}', '{"id": 1, "x": 7}']}
    buffer:
      type: tumbling_window
      interval: 100ms
      join: {query: "SELECT name, sum(x) AS joined FROM users u JOIN orders o ON u.id = o.id
             GROUP BY name", codec: {type: json}}
    pipeline: {processors: []}
    output: {type: stdout}
  - id: rows
    input: {type: file, input_type: {type: csv, path: in.csv}}
    pipeline:
      processors:
        - type: python
          function: f
          script: |
            def f(b):
                open("{calls}", "a").write("call ")
                return [b.slice(0, 1), b.slice(1)]
        - {type: batch, count: 2, timeout_ms: 100}
        - {type: sql, query: "SELECT a AS id, count(*) OVER () AS n FROM flow"}
    output: {type: sql, output_type: {type: sqlite, path: out.db}, table_name: t}
    error_output: {type: drop}
"""
LINES = {
    '{"sensor":"a","flow.value / Int64(2)":5,"s":"failing"}',
    '{"sensor":"b","flow.value / Int64(2)":1.25,"s":"failing"}',
    "no json",
    '{"generated":2}',
    '{"generated":1}',
    '{"name":"a","joined":12}',
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "streams.yaml").write_text(STREAMS.replace("{calls}", str(tmp_path / "calls.txt")))
    (tmp_path / "in.csv").write_text("a\n1\n2\n3\n")
    with closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, n INTEGER, at TEXT DEFAULT 'now')")
    return tmp_path


def lines(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("{") or line == "no json"}


def test_a_file_of_arkflow_runs_as_it_is(cli: CommandLine, directory: Path) -> None:
    done = cli(directory, "run", "streams.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout) == LINES
    assert done.stdout.count('{"generated":2}') == 2
    with closing(sqlite3.connect(directory / "out.db")) as connection:
        found = connection.execute("SELECT id, n, at FROM t ORDER BY id").fetchall()
    assert found == [(1, 3, "now"), (2, 3, "now"), (3, 3, "now")]
    assert (directory / "calls.txt").read_text() == "call ", "the pipeline is computed once"
    converted = cli(directory, "convert", "streams.yaml", "--to", "yaml")
    (directory / "converted.yaml").write_text(converted.stdout)
    again = cli(directory, "run", "converted.yaml", "--quiet")
    assert lines(again.stdout) == LINES, again.stderr


def test_preview_and_cases(cli: CommandLine, directory: Path) -> None:
    (directory / "streams.test.yaml").write_text(
        """\
tests:
  - name: a failure
    given:
      failing_input:
        payloads: ['{"sensor": "x", "value": 4}', '{"value": 9}']
    expect:
      failing_output: [{__payload__: '{"sensor":"x","flow.value / Int64(2)":2,"s":"failing"}'}]
      failing_error_output: [{__payload__: '{"value": 9}'}]
"""
    )
    done = cli(directory, "test", "streams.yaml", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)

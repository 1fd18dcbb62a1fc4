"""Reformatted queries and functions, and converted pipelines, continue their state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.plan.comparison import compare
from penstock.plan.fingerprint import comparable, fingerprint
from penstock.plan.model import Plan
from penstock.plan.node_changes import Change
from penstock.spec.script.writer import to_script
from penstock.spec.yaml.writer import convert

SCRIPT = """\
SET name = 'shop';
CREATE TABLE a (id BIGINT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1 minute')
WITH (connector = 'files', path = 'in.json', format = 'json');
CREATE MACRO twice(x) AS x * 2;
CREATE FUNCTION next(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$
    return x + 1
$$;
CREATE VIEW n AS
SELECT window.start AS start, count(*) AS n, max(twice(next(id))) AS m
FROM a
GROUP BY window(at, '1 hour');
CREATE TABLE o WITH (connector = 'memory');
INSERT INTO o SELECT * FROM n;
"""
YAML = """\
name: shop
sources:
  a:
    type: files
    path: in.json
    format: json
    schema: id BIGINT, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
transforms:
  n:
    type: sql
    sql: |
      -- each hour
      SELECT window.start AS start, count(*) AS n  -- the number of rows
      FROM a

      GROUP BY window(at, '1 hour')
      -- the end
sinks:
  o: {type: memory, from: n}
"""


def _plan(path: Path, text: str) -> Plan:
    path.write_text(text, encoding="utf-8", newline="")
    return app.plan([str(path)])


def _changes(before: dict[str, Any], plan: Plan) -> list[Change]:
    before = json.loads(json.dumps(before))
    return compare(before, comparable(plan, before, b""))


REFORMATTED: dict[str, Callable[[str], str]] = {
    "line ends of Windows": lambda text: text.replace("\n", "\r\n"),
    "comments": lambda text: text.replace("FROM a", "FROM a -- rows").replace("* 2", "*/**/2"),
    "keywords": lambda text: text.replace("SELECT w", "select w").replace("count", "COUNT"),
    "line breaks": lambda text: text.replace(", ", ",\n  "),
}  # fmt: skip


@pytest.mark.parametrize("name", REFORMATTED)
def test_a_reformatted_script_continues_its_state(name: str, tmp_path: Path) -> None:
    first = _plan(tmp_path / "a.sql", SCRIPT)
    second = _plan(tmp_path / "a.sql", REFORMATTED[name](SCRIPT))
    assert _changes(fingerprint(first), second) == _changes(fingerprint(second), first) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AS n,", "AS N,"),
        ("count(*)", "count(id)"),
        ("x * 2", "x * 3"),
        ("x + 1", "x +  1"),
        ("'1 hour'", "'1 Hour'"),
    ],
)
def test_another_query_does_not(old: str, new: str, tmp_path: Path) -> None:
    before = fingerprint(_plan(tmp_path / "a.sql", SCRIPT))
    changes = _changes(before, _plan(tmp_path / "a.sql", SCRIPT.replace(old, new)))
    assert [change.effect for change in changes] == ["incompatible"]


def test_functions_of_earlier_versions_are_the_same(tmp_path: Path) -> None:
    text = SCRIPT.replace("x * 2", "x  *  2").replace("\n    return", "\r\n    return")
    plan = _plan(tmp_path / "a.sql", text)
    before = fingerprint(plan)
    for query in before["queries"].values():
        functions = query["nodes"]["n"]["functions"]
        functions["twice"]["code"] = hashlib.sha256(b"x  *  2").hexdigest()
        code = b"\r\n    return x + 1\n"
        functions["next"]["code"] = hashlib.sha256(code).hexdigest()
    assert _changes(before, plan) == []
    assert _changes(before, _plan(tmp_path / "a.sql", text.replace("2;", "3;"))) != []


def test_a_converted_pipeline_continues_its_state(tmp_path: Path) -> None:
    pipeline = tmp_path / "a.yaml"
    first = _plan(pipeline, YAML)
    script = _plan(tmp_path / "a.sql", to_script([str(pipeline)]).text)
    again = _plan(tmp_path / "b.yaml", convert([str(tmp_path / "a.sql")]))
    assert _changes(fingerprint(first), script) == []
    assert _changes(fingerprint(script), again) == _changes(fingerprint(again), first) == []

"""Rows without a time in windows of the calendar, and in windows of fixed width."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pipelines import Row, Workspace, dump
from test_updating_failures import pipeline as updating_pipeline
from test_updating_failures import table

from penstock.engine import build, derivation
from penstock.engine.updating import batch

pytestmark = pytest.mark.spark

WINDOWS = {
    "day": "calendar_window(at, 'day')",
    "zone": "calendar_window(at, 'day', '+00:00')",
    "fixed": "window(at, '1 day')",
}
SHAPES = {
    "groups": "SELECT {w} AS w, k, count(*) AS n FROM {s} GROUP BY w, k",
    "top": "SELECT * FROM (SELECT w, k, rank() OVER (PARTITION BY w ORDER BY n, k) AS n FROM "
    "(SELECT {w} AS w, k, count(*) AS n FROM {s} GROUP BY w, k)) WHERE n < 3",
    "joined": "SELECT a.w AS w, a.k AS k, b.n AS n FROM "
    "(SELECT {w} AS w, k, count(*) AS n FROM {s} GROUP BY w, k) a JOIN "
    "(SELECT {w} AS w, k, max(x) AS n FROM {s} GROUP BY w, k) b ON a.w <=> b.w AND a.k = b.k",
    "over": "SELECT {w} AS w, k, count(*) OVER (PARTITION BY {w} ORDER BY x) AS n FROM {s}",
    "condition": "SELECT struct(at AS start) AS w, k, count(*) AS n FROM {s} "
    "WHERE {w}.start IS NULL OR x > 0 GROUP BY at, k",
}
VALUES = {
    "values": "SELECT {w} AS w, k, x AS n FROM {s}",
    "subquery": "SELECT struct(at AS start) AS w, k, x AS n FROM {s} WHERE x IN "
    "(SELECT max(x) FROM {s} GROUP BY {w})",
    "distinct": "SELECT DISTINCT {w} AS w, 'k' AS k, 1 AS n FROM {s}",
    "bounds": "SELECT struct({w}.start AS start) AS w, k, count(*) AS n FROM {s} "
    "GROUP BY {w}.start, k",
}
DAYS = ["2026-03-01T10:00:00Z", "2026-03-01T23:00:00Z", None, "2026-03-02T00:00:00Z", None]
ROWS: list[Row] = [
    {"id": number, "k": "ab"[number % 2], "x": number, "at": at, "op": "i"}
    for number, at in enumerate(DAYS)
]
OUTPUT = "SELECT unix_seconds(w.start) AS w, k, n FROM ({})"
COLUMNS = "path: in/*.jsonl, schema: 'id LONG, k STRING, x LONG, at TIMESTAMP{}'"
WATERMARK = "watermark: {column: at, delay: 1 minute}"


DAY = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
HOUR, NEXT = 3600, DAY + 24 * 3600
COUNTS = [(DAY, "a", 1), (DAY, "b", 1), (NEXT, "b", 1)]
RANKS = [(DAY, "a", 1), (DAY, "b", 2), (NEXT, "b", 1)]
LARGEST = [(DAY, "a", 0), (DAY, "b", 1), (NEXT, "b", 3)]
BOUNDED: dict[str, list[tuple[object, ...]]] = {
    "groups": COUNTS,
    "top": RANKS,
    "joined": LARGEST,
    "over": RANKS,
    "condition": [(DAY + 23 * HOUR, "b", 1), (NEXT, "b", 1)],
    "values": LARGEST,
    "subquery": [(DAY + 23 * HOUR, "b", 1), (NEXT, "b", 3)],
    "distinct": [(DAY, "k", 1), (NEXT, "k", 1)],
    "bounds": COUNTS,
}
UPDATED: dict[str, list[tuple[object, ...]]] = {
    "groups": [(DAY, "a", 1), (NEXT, "b", 1)],
    "top": [(DAY, "a", 1), (NEXT, "b", 1)],
    "joined": [(DAY, "a", 0), (NEXT, "b", 3)],
    "over": [(DAY, "a", 1), (NEXT, "b", 1)],
    "condition": [(NEXT, "b", 1)],
    "subquery": [(DAY + 10 * HOUR, "a", 0), (NEXT, "b", 3)],
    "distinct": [(DAY, "k", 1), (NEXT, "k", 1)],
    "bounds": [(DAY, "a", 1), (NEXT, "b", 1)],
}
"""The rows of each shape, and those after the change of a row."""


def queries(shapes: dict[str, str], source: str, first: int = 0) -> dict[str, str]:
    """Returns the shapes, with and without a zone by turns. Groups of `s` have all windows."""
    found = {}
    for number, (shape, sql) in enumerate(shapes.items(), first):
        is_whole = (source, shape) == ("s", "groups")
        names = list(WINDOWS) if is_whole else [("day", "zone")[number % 2]]
        for name in names:
            found[f"{source}_{shape}_{name}"] = OUTPUT.format(sql.format(w=WINDOWS[name], s=source))
    return found


def shape_of(name: str) -> str:
    return name.split("_")[1]


def test_windows_of_bounded_input(workspace: Workspace) -> None:
    workspace.put("in/0.jsonl", map(dump, ROWS))
    found = queries(SHAPES, "s") | queries(SHAPES | VALUES, "plain", 1)
    transforms = "".join(
        f"  {name}: {{type: sql, sql: {json.dumps(sql)}}}\n" for name, sql in found.items()
    )
    sinks = "".join(f"  {name}_out: {{type: memory, from: {name}}}\n" for name in found)
    workspace.run(
        f"runtime: {{partitions: 1}}\nsources:\n  s: {{type: files, {COLUMNS.format('')}, "
        f"{WATERMARK}}}\n  plain: {{type: files, {COLUMNS.format('')}}}\n"
        f"transforms:\n{transforms}sinks:\n{sinks}"
    )
    for name in found:
        assert sorted(workspace.result(f"{name}_out").rows()) == BOUNDED[shape_of(name)], name
    assert workspace.counts["s"]["without_event_time"] > 0


def test_updating_queries(workspace: Workspace) -> None:
    """A change that takes the time of a row away also takes the row out of its window."""
    source = f"sources:\n  c: {{type: files, {COLUMNS.format(', op STRING')}, order: name, "
    source += f"max_files: 1, operation_column: op, primary_key: id, watch: true, {WATERMARK}}}\n"
    shapes = SHAPES | {name: sql for name, sql in VALUES.items() if name != "values"}
    found = queries(shapes, "c")
    text = updating_pipeline(found, f"runtime: {{partitions: 1}}\n{source}")
    workspace.put("in/0.jsonl", map(dump, ROWS))
    workspace.put("in/1.jsonl", map(dump, [ROWS[1] | {"at": None, "op": "u"}]))
    workspace.run(text, until="caught_up")
    for name in found:
        assert table(workspace, name) == UPDATED[shape_of(name)], name


def test_a_query_of_an_earlier_version_keeps_its_windows(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"sources:\n  s: {{type: files, {COLUMNS.format('')}, order: name, watch: true}}\n"
    query = {
        "days": "SELECT calendar_window(at, 'day').start AS day, count(*) AS n FROM s "
        "GROUP BY calendar_window(at, 'day')"
    }
    text = updating_pipeline(query, f"runtime: {{partitions: 1}}\n{source}")
    for module in (build, derivation, batch):
        monkeypatch.setattr(module, "has_timed_windows", lambda checkpoint: False)
    for number in range(2):
        workspace.put(f"in/{number}.jsonl", map(dump, ROWS))
        workspace.run(text, until="caught_up")
        assert sorted(str(count) for _, count in table(workspace, "days")) == [
            str(each * (number + 1)) for each in (1, 2, 2)
        ]
        monkeypatch.undo()
        marks = list((workspace.root / ".penstock").rglob("penstock-timed-windows"))
        assert len(marks) == 1 - number
        for mark in marks:
            mark.unlink()

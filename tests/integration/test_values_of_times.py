"""Values computed from event times, windows of the calendar and sessions, against DuckDB.

A watermark completes groups by event times and windows, not by values as `to_date(at)`. Queries by
values are computed at the end of bounded input, and are updating over input without an end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock import app
from penstock.connectors import memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = {
    "s": ["a 01-30T10:00", "b 01-30T10:15", "a 01-31T22:59", "a 01-31T23:30", "b 02-01T12:00",
          "a 02-03T12:00", "a 03-28T23:30", "b 03-29T21:59", "b 03-29T22:30"],
    "u": ["x 01-30T10:05", "y 02-01T23:50", "z 03-29T22:00"],
}  # fmt: skip
SOURCE = """\
  {name}: {{type: files, path: {name}/*.jsonl, order: name, max_files: {files},
    watch: {watch}, schema: "k STRING, at TIMESTAMP", watermark: {{column: at, delay: 5 minutes}}}}
"""
BERLIN = "from_utc_timestamp(at, 'Europe/Berlin')"
LOCAL = "ts AT TIME ZONE 'Europe/Berlin'"
HOURS = "date_format(s.at, 'HH') = date_format(u.at, 'HH')"
VALUES = {
    "days": (f"SELECT CAST(to_date({BERLIN}) AS STRING) AS d, count(*) AS n FROM s "
             f"GROUP BY to_date({BERLIN})",
             f"SELECT CAST(CAST({LOCAL} AS DATE) AS TEXT), count(*) FROM s GROUP BY ALL"),
    "distinct": ("SELECT DISTINCT date_format(at, 'MM-dd') AS d FROM s",
                 "SELECT DISTINCT strftime(ts, '%m-%d') FROM s"),
    "joined": (f"SELECT s.k, u.k AS o FROM s LEFT JOIN u ON {HOURS}",
               "SELECT s.k, u.k FROM s LEFT JOIN u ON hour(s.ts) = hour(u.ts)"),
    "semi": (f"SELECT s.k FROM s LEFT SEMI JOIN u ON {HOURS}",
             "SELECT s.k FROM s SEMI JOIN u ON hour(s.ts) = hour(u.ts)"),
    "sizes": ("SELECT size(c) AS z, count(*) AS n FROM (SELECT collect_list(CASE WHEN k = 'a' "
              "THEN at END) AS c FROM s GROUP BY window(at, '1 day')) GROUP BY size(c)",
              "SELECT z, count(*) FROM (SELECT count(*) FILTER (k = 'a') AS z FROM s "
              "GROUP BY date_trunc('day', ts)) GROUP BY z"),
    "window_of_value": (f"SELECT CAST(window.start AS STRING) AS w, count(*) AS n FROM s "
                        f"GROUP BY window({BERLIN}, '1 day')",
                        f"SELECT strftime(date_trunc('day', {LOCAL}), '%Y-%m-%d 00:00:00'), "
                        "count(*) FROM s GROUP BY ALL"),
    "same_name": ("SELECT CAST(at AS STRING) AS at, count(*) AS n FROM "
                  "(SELECT date_trunc('month', at) AS at FROM s) GROUP BY at",
                  "SELECT strftime(date_trunc('month', ts), '%Y-%m-%d 00:00:00'), count(*) "
                  "FROM s GROUP BY ALL"),
}  # fmt: skip
"""Queries over values, which no watermark completes, and their answers."""
BOUNDS = "unix_seconds({0}.start) AS s, unix_seconds({0}.end) AS e"
CALENDAR = "SELECT " + BOUNDS + ", count(*) AS n FROM s GROUP BY {0}"
EPOCHS = "SELECT epoch({0})::BIGINT, epoch({1})::BIGINT, count(*) FROM s GROUP BY ALL"
WINDOWS = {
    **{
        unit: (CALENDAR.format(f"calendar_window(at, '{unit}')"),
               EPOCHS.format(f"date_trunc('{unit}', ts)",
                             f"date_trunc('{unit}', ts) + INTERVAL '1 {unit}'"))
        for unit in ("week", "month")
    },
    "day_in_berlin": (
        CALENDAR.format("calendar_window(at, 'day', 'Europe/Berlin')"),
        EPOCHS.format(f"timezone('Europe/Berlin', date_trunc('day', {LOCAL}))",
                      f"timezone('Europe/Berlin', date_trunc('day', {LOCAL}) + INTERVAL 1 DAY)")),
    "month_of_days": (
        "SELECT unix_seconds(w.start) AS s, unix_seconds(w.end) AS e, sum(n) AS n FROM (SELECT k, "
        "calendar_window(at, 'month') AS w, count(*) AS n FROM s GROUP BY k, w) GROUP BY w",
        EPOCHS.format("date_trunc('month', ts)", "date_trunc('month', ts) + INTERVAL '1 month'")),
    "sessions": (
        "SELECT " + BOUNDS.format("session_window") + ", count(*) AS n FROM s "
        "GROUP BY session_window(at, '15 minutes')", ""),
    "sessions_by_key": (
        "SELECT k, " + BOUNDS.format("session_window(at, '31 minutes')") + ", count(*) AS n "
        "FROM s GROUP BY k, session_window(at, '31 minutes')", ""),
}  # fmt: skip
"""Queries by windows, which the watermark completes, and their answers; sessions in Python.

`test_random_windows.py` has other units, and sessions in the words of Arroyo.
"""
QUERIES = VALUES | WINDOWS
Rows = Counter[tuple[Any, ...]]


def times(name: str) -> list[tuple[str, datetime]]:
    rows = (row.split() for row in ROWS[name])
    return [(key, datetime.fromisoformat(f"2026-{time}:00+00:00")) for key, time in rows]


def write(directory: Path, sinks: dict[str, str], *, watch: bool) -> None:
    """Writes the rows, of which each source has two batches, and the pipeline.

    `sinks` has the options of the sink of each query.
    """
    for name in ROWS:
        (directory / name).mkdir()
        for number, (key, time) in enumerate(times(name)):
            row = json.dumps({"k": key, "at": time.isoformat()})
            (directory / name / f"{number}.jsonl").write_text(row + "\n")
    sources = "".join(
        SOURCE.format(name=name, watch=str(watch).lower(), files=-(-len(rows) // 2))
        for name, rows in ROWS.items()
    )
    transforms = "".join(
        f"  {name}: {{type: sql, sql: {json.dumps(QUERIES[name][0])}}}\n" for name in sinks
    )
    outputs = "".join(f"  to_{n}: {{{options}, from: {n}}}\n" for n, options in sinks.items())
    (directory / "p.yaml").write_text(
        f"name: p\nsources:\n{sources}transforms:\n{transforms}sinks:\n{outputs}"
        "runtime: {partitions: 2}\n"
    )


def answer(sql: str) -> Rows:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in ROWS:
            connection.execute(f"CREATE TABLE {name} (k TEXT, ts TIMESTAMPTZ)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", times(name))
        return Counter(connection.execute(sql).fetchall())


def sessions(gap: timedelta, *, by_key: bool) -> Rows:
    """Returns the sessions of `s`: a row belongs to one if it is less than the gap later."""
    found: dict[str, list[list[datetime]]] = {}
    for key, time in sorted(times("s"), key=lambda row: row[1]):
        spans = found.setdefault(key if by_key else "", [])
        if not spans or time - spans[-1][-1] >= gap:
            spans.append([])
        spans[-1].append(time)
    return Counter(
        (*([key] if by_key else []), int(span[0].timestamp()),
         int((span[-1] + gap).timestamp()), len(span))
        for key, spans in found.items()
        for span in spans
    )  # fmt: skip


def in_memory(name: str) -> Rows:
    table = memory.tables.get(f"to_{name}")
    return Counter(tuple(row.values()) for row in (table.to_pylist() if table else []))


def run(directory: Path, spark: SparkSession, **options: Any) -> None:
    memory.clear()
    run_options = app.RunOptions(**options)
    outcome = app.run(directory / "p.yaml", spark=spark.newSession(), options=run_options)
    assert outcome.errors == {}


def test_windows_and_values_of_bounded_input(tmp_path: Path, penstock_spark: SparkSession) -> None:
    write(tmp_path, dict.fromkeys(QUERIES, "type: memory"), watch=False)
    run(tmp_path, penstock_spark)
    expected = {name: answer(sql) for name, (_, sql) in QUERIES.items() if sql}
    expected["sessions"] = sessions(timedelta(minutes=15), by_key=False)
    expected["sessions_by_key"] = sessions(timedelta(minutes=31), by_key=True)
    assert sum(expected["sessions"].values()) == 9
    assert {name: in_memory(name) for name in QUERIES} == expected


def test_endless_input(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Values are updating. A watermark closes windows of the calendar."""
    logs = {n: f"type: files, path: out/{n}, format: debezium_json" for n in VALUES}
    windows = dict.fromkeys(("month", "day_in_berlin"), "type: memory")
    write(tmp_path, logs | windows, watch=True)
    run(tmp_path, penstock_spark, until="caught_up")
    for name, (_, sql) in VALUES.items():
        found: Rows = Counter()
        for row, weight in changes(tmp_path / "out" / name):
            found[tuple(row.values())] += weight
        open_window = name == "sizes"
        expected = answer(sql)
        assert open_window or +found == expected, name
    latest = datetime(2026, 3, 29, 22, 25, tzinfo=UTC).timestamp()
    for name in windows:
        closed = {row: n for row, n in answer(QUERIES[name][1]).items() if row[1] <= latest}
        assert dict(in_memory(name)) == closed and closed


def changes(directory: Path) -> Iterator[tuple[dict[str, Any], int]]:
    for path in sorted(directory.glob("part-*")):
        for change in map(json.loads, path.read_text("utf-8").splitlines()):
            for side, weight in (("before", -1), ("after", 1)):
                if change[side] is not None:
                    yield change[side], weight

"""Divisions of rows into files and batches: no division changes the rows of a stateful operator.

The rows are in order within the delay of the watermark, so that none is late. Each query runs over
a division, and is compared with the answer of DuckDB or of a few lines of Python.
`python tests/integration/test_divisions.py --seed S --seeds N` computes other rows, and several
divisions of them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pytest

from penstock import app
from penstock.connectors import memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DELAY = 60
START = 1_700_000_000
SOURCE = """\
  {name}:
    type: files
    path: {name}/*.jsonl
    order: name
    max_files: {files}
    schema: id BIGINT, k STRING, x BIGINT, ts TIMESTAMP
    watermark: {{column: ts, delay: {delay}s}}
"""


class Event(NamedTuple):
    """A row of a stream. `ts` is in seconds since 1970."""

    id: int
    k: str
    x: int
    ts: int


Values = tuple[Any, ...]
Answer = str | Callable[[Sequence[Event]], Iterable[Values]]
"""SQL of DuckDB over `s` and `u`, whose `ts` are seconds, or a function of the rows of `s`."""


def once(within: float, key: Callable[[Event], Values] = lambda row: (row.k,)) -> Answer:
    """Returns the answer of a deduplication, with all columns."""

    def answer(rows: Sequence[Event]) -> Iterator[Values]:
        kept: dict[Values, list[int]] = {}
        for row in rows:
            times = kept.setdefault(key(row), [])
            if not any(row.ts == time or abs(row.ts - time) < within for time in times):
                times.append(row.ts)
                yield tuple(row)

    return answer


def of_once(select: str, within: float = DELAY) -> Answer:
    """Returns the answer of DuckDB over the rows of a deduplication, the table `once`."""

    def answer(rows: Sequence[Event]) -> list[Values]:
        with duckdb.connect() as connection:
            fill(connection, "once", [Event(*row) for row in once(within)(rows)])  # type: ignore[operator]
            return connection.execute(select).fetchall()

    return answer


def apart(rows: Sequence[Event]) -> Iterator[Values]:
    """Yields the ends of minutes with rows of a key, those of a key at least five minutes apart."""
    kept: dict[str, int] = {}
    for end, key in sorted({(row.ts // 60 * 60 + 60, row.k) for row in rows}):
        if key not in kept or end - kept[key] >= 300:
            kept[key] = end
            yield key, end - 0.000001


def sessions(rows: Sequence[Event]) -> Iterator[Values]:
    for key in {row.k for row in rows}:
        times = sorted(row.ts for row in rows if row.k == key)
        starts = [i for i, ts in enumerate(times) if i == 0 or ts - times[i - 1] >= 5]
        for first, last in zip(starts, [*starts[1:], len(times)], strict=True):
            yield key, times[first], times[last - 1] + 5, last - first


def sql(text: str) -> str:
    return f"{{type: sql, sql: {json.dumps(text)}}}"


NEAR = "s.k = u.k AND u.ts BETWEEN s.ts AND s.ts + {}"
SPARK_NEAR, DUCK_NEAR = NEAR.format("INTERVAL 20 SECONDS"), NEAR.format(20)
MINUTE = "window(ts, '1 minute')"
QUERIES: dict[str, tuple[str, Answer]] = {
    "once": ("{type: dedupe, from: s, keys: [k]}", once(DELAY)),
    "once_long": ("{type: dedupe, from: s, keys: [k], within: 10 minutes}", once(600)),
    "once_short": ("{type: dedupe, from: s, keys: [k, x], within: 2500ms}",
                   once(2.5, lambda row: (row.k, row.x))),
    "once_ever": ("{type: dedupe, from: s, keys: [k], within: forever}", once(1e9)),
    "once_each": ("{type: dedupe, from: s, within: 1h}", once(0, lambda row: tuple(row))),
    "once_in_minutes": (
        sql("SELECT k, unix_seconds(window.start) AS t, count(*) AS n "
            f"FROM once GROUP BY k, {MINUTE}"),
        of_once("SELECT k, ts - ts % 60, count(*) FROM once GROUP BY ALL")),
    "once_in_total": (sql("SELECT k, count(*) AS n FROM once GROUP BY k"),
                      of_once("SELECT k, count(*) FROM once GROUP BY k")),
    "apart": ("{type: dedupe, from: minutes, keys: [k], within: 5 minutes}", apart),
    "tumbling": (
        sql("SELECT k, unix_seconds(window.start) AS t, count(*) AS n "
            f"FROM s GROUP BY k, {MINUTE}"),
        "SELECT k, ts - ts % 60, count(*) FROM s GROUP BY ALL"),
    "sliding": (
        sql("SELECT unix_seconds(window.start) AS t, count(DISTINCT k) AS n, sum(x) AS x FROM s "
            "GROUP BY window(ts, '2 minutes', '20 seconds')"),
        "SELECT ts - ts % 20 - 20 * b AS t, count(DISTINCT k), sum(x) FROM s, range(6) r(b) "
        "GROUP BY t"),
    "sessions": (
        sql("SELECT k, unix_seconds(session_window.start) AS s, unix_seconds(session_window.end) "
            "AS e, count(*) AS n FROM s GROUP BY k, session_window(ts, '5 seconds')"), sessions),
    "distinct_rows": (sql("SELECT DISTINCT k, ts FROM s"), "SELECT DISTINCT k, ts FROM s"),
    "joined": (sql(f"SELECT s.id, u.id AS other FROM s JOIN u ON {SPARK_NEAR}"),
               f"SELECT s.id, u.id FROM s JOIN u ON {DUCK_NEAR}"),
    "joined_left": (sql(f"SELECT s.id, u.id AS other FROM s LEFT JOIN u ON {SPARK_NEAR}"),
                    f"SELECT s.id, u.id FROM s LEFT JOIN u ON {DUCK_NEAR}"),
    "joined_semi": (sql(f"SELECT s.id FROM s LEFT SEMI JOIN u ON {SPARK_NEAR}"),
                    f"SELECT s.id FROM s SEMI JOIN u ON {DUCK_NEAR}"),
    "total": (sql("SELECT k, max(x) AS x, count(*) AS n FROM s GROUP BY k"),
              "SELECT k, max(x), count(*) FROM s GROUP BY k"),
}  # fmt: skip
MINUTES = sql(
    "SELECT k, window_time(w) AS t FROM "
    f"(SELECT k, {MINUTE} AS w, count(*) AS n FROM s GROUP BY k, {MINUTE})"
)


LONG_FORM = ("tumbling", "sliding", "sessions", "joined", "joined_left")
"""Queries that only `main` computes: those of `test_random_windows.py` include them."""
NAMES = [name for name in QUERIES if name not in LONG_FORM]


def pipeline(files: int, names: Sequence[str]) -> str:
    """Returns a pipeline with a sink for each query, whose batches have so many files."""
    sources = "".join(SOURCE.format(name=name, files=files, delay=DELAY) for name in "su")
    transforms = "".join(f"  {name}: {QUERIES[name][0]}\n" for name in names)
    sinks = "".join(f"  to_{n}: {{type: memory, from: {n}, name: {n}}}\n" for n in names)
    return (
        f"name: p{files}\nsources:\n{sources}transforms:\n  minutes: {MINUTES}\n{transforms}"
        f"sinks:\n{sinks}runtime: {{partitions: 2}}\n"
    )


def events(chance: random.Random, count: int) -> list[Event]:
    """Returns rows in order within the delay. Some are duplicates, some have the same time."""
    rows: list[Event] = []
    latest = START
    for number in range(count):
        latest += chance.choice([0, 1, 2, 5, 15, chance.randint(0, 90)])
        ts = latest - chance.choice([0, 0, 0, 1, 3, chance.randint(0, DELAY - 1)])
        if rows and chance.random() < 0.15:
            near = [row for row in rows if row.ts > latest - DELAY] or [rows[-1]._replace(ts=ts)]
            rows.append(chance.choice(near))
        else:
            rows.append(Event(number, chance.choice("abcd"), chance.randint(0, 9), ts))
    return rows


def write(folder: Path, rows: Sequence[Event], chance: random.Random, files: int) -> None:
    """Writes rows, in their order, to so many files of random lengths."""
    folder.mkdir(parents=True)
    cuts = sorted(chance.choices(range(len(rows) + 1), k=files - 1))
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        lines = (
            json.dumps({**row._asdict(), "ts": f"{datetime.fromtimestamp(row.ts, UTC):%FT%TZ}"})
            for row in rows[start:stop]
        )
        (folder / f"{number:03}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def answers(
    streams: dict[str, list[Event]], names: Sequence[str]
) -> dict[str, Counter[Values]]:  # fmt: skip
    """Returns the rows of each query."""
    with duckdb.connect() as connection:
        for name, rows in streams.items():
            fill(connection, name, rows)
        return {
            name: Counter(
                connection.execute(answer).fetchall()
                if isinstance(answer, str)
                else answer(streams["s"])
            )
            for name, answer in ((name, QUERIES[name][1]) for name in names)
        }


def fill(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Event]) -> None:
    connection.execute(f"CREATE TABLE {table} (id BIGINT, k TEXT, x BIGINT, ts BIGINT)")
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)


def written(name: str) -> Counter[Values]:
    rows = memory.tables[name].to_pylist() if name in memory.tables else []
    return Counter(tuple(map(_plain, row.values())) for row in rows)


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value


DIVISION = (4, 2)
"""The number of files of a stream, and of files in a batch. Files have random lengths."""
MORE_DIVISIONS = ((1, 1), (5, 1), (7, 3))


def check(
    directory: Path, spark: SparkSession, seed: int, count: int = 150,
    divisions: Sequence[tuple[int, int]] = (DIVISION,), names: Sequence[str] = NAMES,
) -> int:  # fmt: skip
    """Compares the rows of all divisions with the answers. Returns the number of comparisons."""
    chance = random.Random(seed)
    streams = {name: events(chance, count) for name in "su"}
    expected = answers(streams, names)
    wrong = []
    for number, (parts, batch) in enumerate(divisions):
        folder = directory / str(number)
        for name, rows in streams.items():
            write(folder / name, rows, chance, parts)
        (folder / "p.yaml").write_text(pipeline(batch, names))
        memory.clear()
        outcome = app.run(folder / "p.yaml", spark=spark.newSession())
        assert outcome.errors == {}, outcome.errors
        for name, rows in expected.items():
            found = written(name)
            if found != rows:
                wrong.append(
                    f"{name} in {parts} files, {batch} in a batch:\n"
                    f"  lost {sorted(rows - found, key=repr)[:5]}\n"
                    f"  not expected {sorted(found - rows, key=repr)[:5]}"
                )
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)
    return len(divisions) * len(expected)


@pytest.mark.parametrize("seed", [1])
def test_a_division_changes_no_rows(
    seed: int, tmp_path: Path, penstock_spark: SparkSession
) -> None:
    assert check(tmp_path, penstock_spark, seed) == len(NAMES)


JOINED = """\
name: joined
sources:
  l: {type: files, path: l/*.jsonl, order: name, max_files: 1, schema: "id INT, at TIMESTAMP",
      watermark: {column: at}}
  r: {type: files, path: r/*.jsonl, order: name, max_files: 1, schema: "at TIMESTAMP",
      watermark: {column: at}}
transforms:
  pairs:
    type: sql
    sql: SELECT id, l.at, 1 AS k FROM l JOIN r ON r.at BETWEEN l.at AND l.at + INTERVAL 1 HOUR
         AND id % 1 = second(r.at)
  once: {type: dedupe, from: pairs, keys: [k], within: 10 minutes}
sinks:
  out: {type: memory, from: once, name: once_joined}
"""


def test_rows_of_a_join_are_compared_after_the_watermark_of_the_query(
    tmp_path: Path, penstock_spark: SparkSession
) -> None:
    """The join has rows from up to an hour before the watermark, which are not late."""
    (tmp_path / "p.yaml").write_text(JOINED)
    for name, times in {"l": ["10:00", "10:05", "10:50"], "r": ["09:00", "10:45", "10:55"]}.items():
        (tmp_path / name).mkdir()
        for number, time in enumerate(times):
            row = json.dumps({"id": number, "at": f"2026-01-01T{time}:00Z"})
            (tmp_path / name / f"{number}.jsonl").write_text(row + "\n")
    memory.clear()
    outcome = app.run(tmp_path / "p.yaml", spark=penstock_spark.newSession())
    assert outcome.errors == {}
    assert [row["id"] for row in memory.tables["once_joined"].to_pylist()] == [0, 2]


def main() -> None:
    """Computes other rows and divisions."""
    import tempfile

    from penstock.testing.suite import case_session

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    with case_session() as spark:
        for seed in range(options.seed, options.seed + options.seeds):
            with tempfile.TemporaryDirectory() as directory:
                given = options.count, MORE_DIVISIONS, [*QUERIES]
                cases = check(Path(directory), spark, seed, *given)
            print(f"seed {seed}: {cases} comparisons", flush=True)


if __name__ == "__main__":
    main()

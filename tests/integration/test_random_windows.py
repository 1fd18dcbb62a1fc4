"""Random queries over windows and joins of random streams, with a restart, against DuckDB.

All queries of a seed run in one pipeline. The key `g` divides the rows into independent sets, each
of which is a case of most queries. `python tests/integration/test_random_windows.py --seed S
--seeds N` computes other queries over other rows.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from windowed_queries import Grammar, Query, Sessions
from windowed_rows import DELAYS, SECOND, Step, Streams, assign_sessions

from penstock import app
from penstock.connectors import memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SETS, BATCHES = 5, 3
TABLE = """\
CREATE TABLE {name} (id INT, g INT, k STRING, x INT, ts TIMESTAMP,
    WATERMARK FOR ts AS ts - INTERVAL '{delay} seconds')
WITH (connector = 'files', path = '{name}/*.jsonl', 'order' = 'name', max_files = 2);
"""
CHANGES = """\
CREATE TABLE c (id INT PRIMARY KEY, g INT, k STRING, x INT, ts TIMESTAMP, op STRING,
    WATERMARK FOR ts AS ts)
WITH (connector = 'files', path = 'c/*.jsonl', 'order' = 'name', max_files = 1,
    operation_column = 'op');
"""
Rows = Counter[tuple[Any, ...]]


def script(queries: Sequence[Query]) -> str:
    """Returns a pipeline with a sink for each query."""
    tables = "".join(
        TABLE.format(name=name, delay=delay // SECOND) for name, delay in DELAYS.items()
    )
    sinks = "".join(
        f"CREATE TABLE out{number} WITH ({_sink(number, query)}) AS {query.sql};\n"
        for number, query in enumerate(queries)
    )
    return f"SET name = 'p';\nSET partitions = 1;\n{tables}{CHANGES}{sinks}"


def _sink(number: int, query: Query) -> str:
    if query.reads == ("c",):
        return f"connector = 'files', path = 'out{number}', format = 'debezium_json'"
    return "connector = 'memory'"


def written(directory: Path, number: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields the rows of a sink with their weights: a row that is retracted has the weight -1."""
    table = f"out{number}"
    for row in memory.tables[table].to_pylist() if table in memory.tables else ():
        yield row, 1
    for path in (directory / table).glob("part-*"):
        for change in map(json.loads, path.read_text("utf-8").splitlines()):
            for side, weight in (("before", -1), ("after", 1)):
                if change[side] is not None:
                    yield change[side], weight


def check(
    directory: Path, spark: SparkSession, seed: int, sets: int = SETS, batches: int = BATCHES,
    extra: int = 0,
) -> int:  # fmt: skip
    """Computes queries over streams with a restart, and compares. Returns the number of cases."""
    chance = random.Random(seed)
    streams, queries = Streams(chance, sets, batches), Grammar(chance).queries(extra)
    file = directory / "p.sql"
    file.write_text(script(queries))
    memory.clear()
    for number in range(len(streams.runs)):
        streams.write(directory, number)
        until = "auto" if number == len(streams.runs) - 1 else "caught_up"
        options = app.RunOptions(until=until)
        outcome = app.run(file, spark=spark.newSession(), options=options)
        assert outcome.errors == {}, outcome.errors
    wrong: list[str] = []
    empty: list[str] = []
    with ExitStack() as stack:
        connections = {
            reads: stack.enter_context(duckdb.connect()) for reads in {q.reads for q in queries}
        }
        for reads, connection in connections.items():
            load(connection, list(streams.steps(reads)), reads)
        for number, query in enumerate(queries):
            connection = connections[query.reads]
            found, expected = compare(connection, query, written(directory, number), streams)
            empty += [] if expected else [query.sql]
            if found != expected:
                wrong.append(describe(query, found, expected))
    assert not wrong, f"seed {seed}:\n" + "\n".join(wrong)
    assert len(empty) <= len(queries) // 5, f"seed {seed}: too many answers have no rows: {empty}"
    return sum(sets if query.by_set else 1 for query in queries)


def describe(query: Query, found: Rows, expected: Rows) -> str:
    lost, extra = expected - found, found - expected
    return (
        f"{query.shape}: {query.sql}\n  lost {lost.total()}: {list(lost)[:5]}\n"
        f"  not expected {extra.total()}: {list(extra)[:5]}"
    )


def compare(
    connection: duckdb.DuckDBPyConnection,
    query: Query,
    rows: Iterable[tuple[dict[str, Any], int]],
    streams: Streams,
) -> tuple[Rows, Rows]:
    """Returns the rows of a query, and those of DuckDB over the rows that are not late."""
    if query.sessions is not None:
        load_sessions(connection, query.sessions, list(streams.steps(query.reads)))
    connection.execute(query.answer)
    names = [column[0] for column in connection.description or ()]
    expected = Counter(map(_plain, connection.fetchall()))
    found: Rows = Counter()
    for row, weight in rows:
        found[_plain(tuple(row[name] for name in names))] += weight
    return Counter({row: count for row, count in found.items() if count}), expected


def load(
    connection: duckdb.DuckDBPyConnection, steps: Sequence[Step], names: Sequence[str]
) -> None:
    """Creates the tables of streams, with the watermark that each row is compared with."""
    for name in names:
        connection.execute(
            f"CREATE TABLE {name} (id INT, g INT, k TEXT, x INT, ts BIGINT, late BIGINT)"
        )
        rows = [(*row, step.late) for step in steps for row in step.rows.get(name, ())]
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?)", rows)


def load_sessions(
    connection: duckdb.DuckDBPyConnection, sessions: Sessions, steps: Sequence[Step]
) -> None:
    """Creates the table of rows with their sessions, without late rows."""
    keys = "".join(f", {key}" for key in sessions.keys)
    rows = connection.execute(f"SELECT id, ts{keys} FROM ({sessions.rows})").fetchall()
    spans = assign_sessions(steps, {row[0]: (row[2:], row[1]) for row in rows}, sessions.gap)
    connection.execute("CREATE OR REPLACE TABLE spans (id INT, s BIGINT, e BIGINT)")
    connection.executemany(
        "INSERT INTO spans VALUES (?, ?, ?)", [(id_, *span) for id_, span in spans.items()]
    )
    connection.execute(
        f"CREATE OR REPLACE TABLE sessions AS FROM ({sessions.rows}) JOIN spans USING (id)"
    )


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row)


@pytest.mark.parametrize("seed", [1])
def test_rows_are_the_answer_of_duckdb(
    seed: int, tmp_path: Path, penstock_spark: SparkSession
) -> None:
    assert check(tmp_path, penstock_spark, seed) >= 100


def main() -> None:
    """Computes other queries over other rows."""
    import tempfile

    from penstock.testing.suite import case_session

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sets", type=int, default=SETS)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--extra", type=int, default=0, help="queries of random shapes")
    options = parser.parse_args()
    with case_session() as spark:
        for seed in range(options.seed, options.seed + options.seeds):
            with tempfile.TemporaryDirectory() as directory:
                given = options.sets, options.batches, options.extra
                cases = check(Path(directory), spark, seed, *given)
            print(f"seed {seed}: {cases} cases: as DuckDB", flush=True)


if __name__ == "__main__":
    main()

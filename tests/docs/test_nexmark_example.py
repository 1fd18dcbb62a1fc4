"""examples/nexmark, with a restart between two halves of the files, against DuckDB."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from blocks import Reader, blocks

from command_line import CommandLine
from penstock import app

pytestmark = [pytest.mark.docs, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "nexmark"
ANSWERS = Path(__file__).parent / "nexmark"
"""The queries in the SQL of DuckDB."""
TIMES = {
    "person": ["datetime"],
    "auction": ["datetime", "expires"],
    "bid": ["datetime", "arrival"],
    "side_input": [],
}
"""The columns of each table that are times."""
EVENTS = ("person", "auction", "bid")
QUERIES = tuple(f"q{number}" for number in range(23))
WINDOWED = ("q5", "q7", "q8", "q11", "q12")
"""Windows that are open in the middle are not written then."""
KEYS = {
    "q4": ("category",),
    "q6": ("id",),
    "q9": ("id",),
    "q15": ("day",),
    "q16": ("channel", "day"),
    "q17": ("auction", "day"),
    "q18": ("bidder", "auction"),
    "q19": ("auction", "place"),
}
"""The primary keys of the queries that write changes."""
FINAL = ("q0", "q1", "q2", "q3", "q10", "q13", "q14", "q20", "q21", "q22")
"""The queries that write rows once, in the batch in which they read them."""
TOGETHER = {FINAL: "q20", (*KEYS,): "q20", WINDOWED: "q7"}
"""The queries that run as one script, and the one whose tables of bids and auctions they share."""
_SHARED = re.compile(r"^CREATE TABLE (bid|auction) [^;]*;\n", re.MULTILINE)
CONTINUOUS = [name for name in QUERIES if name not in WINDOWED]


@dataclass(frozen=True)
class Ran:
    """The files that a query has written: before the restart, and at the end."""

    half: Sequence[Path]
    whole: Sequence[Path]


Run = Callable[[str], Ran]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory, cli: CommandLine) -> Path:
    """Carries out the README and returns its directory, with the first third of each file."""
    where = tmp_path_factory.mktemp("nexmark") / "example"
    shutil.copytree(EXAMPLE, where, ignore=shutil.ignore_patterns("data", "out", ".penstock"))
    with closing(Reader(where, cli)) as reader:
        for block in blocks(where / "README.md"):
            reader.perform(block)
    for path in (path for table in EVENTS for path in (where / "data" / table).rglob("part-*")):
        rows = pq.read_table(path)
        pq.write_table(rows.slice(0, len(rows) // 3), path)
    return where


@pytest.fixture(scope="module")
def database(example: Path) -> duckdb.DuckDBPyConnection:
    """Loads the events into two schemas: `half` has a file of each table, `whole` has all."""
    connection = duckdb.connect()
    for part, count in (("half", 1), ("whole", None)):
        connection.execute(f"CREATE SCHEMA {part}")
        for table, times in TIMES.items():
            paths = [str(path) for path in in_order(example / "data" / table)[:count]]
            naive = ", ".join(f"{name}::TIMESTAMP AS {name}" for name in times)
            columns = f"* REPLACE ({naive})" if times else "*"
            connection.execute(
                f"CREATE TABLE {part}.{table} AS SELECT {columns} FROM read_parquet({paths})"
            )
    return connection


@pytest.fixture(scope="module")
def run(example: Path, cli: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Returns a function that runs a query once, with a restart after the first files."""
    scripts = {name: names for names in TOGETHER for name in names}

    @cache
    def run_queries(names: tuple[str, ...]) -> dict[str, Ran]:
        where = tmp_path_factory.mktemp(names[0])
        script = _script(names)
        (where / "queries.sql").write_text(script)
        found = []
        last = _watching(script) if names[0] in KEYS else []
        for index, options in enumerate((last or ["--until-caught-up"], last)):
            for table in TIMES:
                (where / "data" / table).mkdir(parents=True, exist_ok=True)
                for path in in_order(example / "data" / table)[index : index + 1]:
                    shutil.copy(path, where / "data" / table)
            done = cli(where, "run", "queries.sql", "--quiet", *options)
            assert done.returncode == 0, done.stdout + done.stderr
            found.append({name: in_order(where / "out" / name) for name in names})
        half, whole = found
        return {name: Ran(half[name], whole[name]) for name in names}

    return lambda name: run_queries(scripts.get(name, (name,)))[name]


def _script(names: tuple[str, ...]) -> str:
    """Returns the script of a query, or one script of several queries."""
    scripts = [(EXAMPLE / f"{name}.sql").read_text() for name in names]
    if len(scripts) == 1:
        return scripts[0]
    owner = (EXAMPLE / f"{TOGETHER[names]}.sql").read_text()
    tables = {table[1]: table[0] for table in _SHARED.finditer(owner)}
    read = {table[1] for script in scripts for table in _SHARED.finditer(script)}
    shared = [text for name, text in tables.items() if name in read]
    own = [
        _SHARED.sub(lambda found: "" if found[1] in tables else found[0], text) for text in scripts
    ]
    return "".join([*shared, *own])


def _watching(script: str) -> list[str]:
    """Returns options with which a query that is never final writes changes: endless input."""
    tables = [table for table in TIMES if f"CREATE TABLE {table} " in script]
    watch = [f"--set=sources.{table}.watch=true" for table in tables]
    return ["--until-caught-up", *watch]


def in_order(directory: Path) -> list[Path]:
    """Returns the files of a directory in the order of their batches and partitions."""
    return sorted(directory.rglob("part-*"), key=lambda path: path.stem.split("-")[-2:])


def load(
    database: duckdb.DuckDBPyConnection, name: str, part: str, files: Sequence[Path], scratch: Path
) -> None:
    """Creates the table `expected`, the answer of DuckDB, and the table `written`."""
    database.execute(f"SET schema = '{part}'")
    query = (ANSWERS / f"{name}.sql").read_text()
    database.execute(f"CREATE OR REPLACE TABLE main.expected AS {query}")
    described = database.execute("DESCRIBE main.expected").fetchall()
    types = {column: type_ for column, type_, *_ in described}
    if name in KEYS:
        changes = (json.loads(line) for path in files for line in path.open())
        files = [scratch / "rows.jsonl"]
        files[0].write_text("".join(f"{json.dumps(row)}\n" for row in fold(changes, KEYS[name])))
    paths = [str(path) for path in files]
    database.execute(
        f"CREATE OR REPLACE TABLE main.written AS SELECT {', '.join(types)} FROM read_json("
        f"{paths}, columns = {types}, hive_partitioning = true, hive_types_autocast = false)"
    )


def fold(changes: Iterable[Any], key: Sequence[str]) -> Iterable[Any]:
    """Returns the rows of a table after changes."""
    rows = {}
    for change in changes:
        row = change["before"] if change["op"] == "d" else change["after"]
        identity = tuple(row[column] for column in key)
        if change["op"] == "d":
            rows.pop(identity, None)
        else:
            rows[identity] = row
    return rows.values()


def rows_only_in(database: duckdb.DuckDBPyConnection, one: str, other: str) -> list[Any]:
    """Returns up to five rows of a table that another one has less often."""
    query = f"FROM main.{one} EXCEPT ALL FROM main.{other} LIMIT 5"
    return database.execute(query).fetchall()


def test_scripts_and_answers_are_complete() -> None:
    scripts = {path.stem: app.plan(path) for path in EXAMPLE.glob("q*.sql")}
    assert {*scripts} == {*QUERIES}
    assert all(name in plan.nodes for name, plan in scripts.items())
    assert {path.stem for path in ANSWERS.glob("*.sql")} == {*QUERIES}
    changes = {path.stem for path in EXAMPLE.glob("q*.sql") if "debezium" in path.read_text()}
    assert changes == {*KEYS}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_at_the_end(
    name: str, run: Run, database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    load(database, name, "whole", run(name).whole, tmp_path)
    assert not rows_only_in(database, "expected", "written")
    assert not rows_only_in(database, "written", "expected")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_rows_before_the_restart(
    name: str, run: Run, database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    files = run(name).half
    assert files, "nothing is written"
    load(database, name, "half", files, tmp_path)
    assert not rows_only_in(database, "expected", "written")
    assert not rows_only_in(database, "written", "expected")


@pytest.mark.parametrize("name", WINDOWED)
def test_windows_before_the_restart(
    name: str, run: Run, database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    load(database, name, "whole", run(name).half, tmp_path)
    assert rows_only_in(database, "expected", "written"), "the rest follows"
    assert not rows_only_in(database, "written", "expected")

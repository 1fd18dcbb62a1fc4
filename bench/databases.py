"""Rows per second and CPU seconds of each database sink and source, and of the client in a loop.

    ./dev bench databases [--json] [--rows N] [--only NAME,NAME]

Both sides of a line move the same Arrow batches of 10,000 rows into a table with a primary key, and
commit 100,000 rows at once: the sink, and the client in its own best way (executemany, Arrow,
COPY). The source reads the table in the order of its key into Arrow batches, and the client reads
the same query: as tuples from SQLite, as Arrow from DuckDB, and as CSV that Arrow parses from
PostgreSQL. CPU seconds are those of this process: a server has its own. `slower` is the time of the
sink or the source for one of the client. Spark is not part of it.
"""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import options
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from penstock.sdk import BatchId, Context, Read, registry
from servers.postgres import Postgres

ROWS, BATCH = 10_000, 100_000
COLUMNS = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()),
        ("count", pa.int32()), ("changed", pa.timestamp("us", tz="UTC")),
    ]
)  # fmt: skip
QUERY = 'SELECT * FROM t ORDER BY "id"'


@dataclass(frozen=True)
class Cost:
    """Rows per second, and CPU seconds for all rows."""

    rows: float
    cpu: float


class System(ABC):
    """A database with the best way of its client."""

    name: ClassVar[str]

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Returns the options of the connection."""

    @abstractmethod
    def create(self) -> None:
        """Creates the empty table `t`, with the key `id`, in place of an earlier one."""

    @abstractmethod
    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Writes batches in one transaction."""

    @abstractmethod
    def read(self) -> int:
        """Reads all rows. Returns their number."""


class Sqlite(System):
    name = "sqlite"

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "sqlite.db")

    def options(self) -> dict[str, Any]:
        return {"path": self.path}

    def create(self) -> None:
        with closing(sqlite3.connect(self.path)) as db:
            db.execute("DROP TABLE IF EXISTS t")
            db.execute(
                'CREATE TABLE t ("id" BIGINT PRIMARY KEY, "name" TEXT, "price" DOUBLE, '
                '"count" INTEGER, "changed" TIMESTAMP)'
            )

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            for rows in batches:
                texts = pc.strftime(rows["changed"], "%Y-%m-%d %H:%M:%S")
                columns = [*(column.to_pylist() for column in rows.columns[:-1]), texts.to_pylist()]
                db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", zip(*columns, strict=True))

    def read(self) -> int:
        with closing(sqlite3.connect(self.path)) as db:
            cursor = db.execute(QUERY)
            return sum(map(len, iter(lambda: cursor.fetchmany(ROWS), [])))


class Duckdb(System):
    name = "duckdb"

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "duck.db")

    def options(self) -> dict[str, Any]:
        return {"path": self.path}

    def create(self) -> None:
        with duckdb.connect(self.path) as db:
            db.execute("DROP TABLE IF EXISTS t")
            db.execute(
                'CREATE TABLE t ("id" BIGINT PRIMARY KEY, "name" TEXT, "price" DOUBLE, '
                '"count" INTEGER, "changed" TIMESTAMPTZ)'
            )

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with duckdb.connect(self.path) as db:
            db.execute("BEGIN")
            for rows in batches:
                db.register("batch", rows)
                db.execute("INSERT INTO t SELECT * FROM batch")
            db.execute("COMMIT")

    def read(self) -> int:
        with duckdb.connect(self.path, read_only=True) as db:
            return sum(rows.num_rows for rows in db.sql(QUERY).to_arrow_reader(ROWS))


class PostgresTable(System):
    name = "postgres"

    def __init__(self, directory: Path, server: Postgres) -> None:
        self.server = server

    def options(self) -> dict[str, Any]:
        return self.server.login

    def create(self) -> None:
        with self.server.client() as db:
            db.execute("DROP TABLE IF EXISTS t")
            db.execute(
                'CREATE TABLE t ("id" BIGINT PRIMARY KEY, "name" TEXT, '
                '"price" DOUBLE PRECISION, "count" INTEGER, "changed" TIMESTAMPTZ)'
            )

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        statement = "COPY t FROM STDIN (FORMAT csv)"
        with self.server.client() as db, db.cursor() as cursor, cursor.copy(statement) as copy:
            for rows in batches:
                data = io.BytesIO()
                csv.write_csv(rows, data, csv.WriteOptions(include_header=False))
                copy.write(data.getvalue())

    def read(self) -> int:
        count, texts = 0, []
        statement = f"COPY ({QUERY}) TO STDOUT (FORMAT csv)"
        with self.server.client() as db, db.cursor() as cursor, cursor.copy(statement) as copy:
            for text in copy:
                texts.append(bytes(text))
                if len(texts) == ROWS:
                    count += _parsed(b"".join(texts))
                    texts = []
        return count + (_parsed(b"".join(texts)) if texts else 0)


def _parsed(data: bytes) -> int:
    read = csv.ReadOptions(column_names=COLUMNS.names, use_threads=False)
    types = csv.ConvertOptions(column_types=COLUMNS)
    return int(csv.read_csv(pa.BufferReader(data), read, convert_options=types).num_rows)


@contextmanager
def started(only: Sequence[str] | None) -> Iterator[Iterator[System]]:
    """Yields the systems, each with its server."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        directory = Path(scratch)

        def systems() -> Iterator[System]:
            for kind in (Sqlite, Duckdb):
                if only is None or kind.name in only:
                    yield kind(directory)
            if only is None or PostgresTable.name in only:
                with Postgres() as server:
                    yield PostgresTable(directory, server)

        yield systems()


def batches_of(count: int) -> list[pa.RecordBatch]:
    """Returns rows in batches."""
    made = []
    for first in range(0, count, ROWS):
        ids = pa.array(range(first, min(count, first + ROWS)), pa.int64())
        columns = [
            ids,
            pc.binary_join_element_wise("name of ", ids.cast(pa.string()), ""),
            pc.divide(ids.cast(pa.float64()), 7.0),
            ids.cast(pa.int32()),
            pc.multiply(ids, 1_234_567).cast(pa.timestamp("us", tz="UTC")),
        ]
        made.append(pa.RecordBatch.from_arrays(columns, schema=COLUMNS))
    return made


def measured(count: int, function: Callable[[], Any]) -> Cost:
    """Returns the cost of a call."""
    began, cpu = time.perf_counter(), time.process_time()
    function()
    return Cost(count / (time.perf_counter() - began), time.process_time() - cpu)


def client_writes(system: System, batches: Sequence[pa.RecordBatch]) -> None:
    """Writes rows by the client."""
    step = BATCH // ROWS
    for start in range(0, len(batches), step):
        system.write(batches[start : start + step])


def sink_writes(system: System, batches: Sequence[pa.RecordBatch]) -> None:
    """Writes rows by the sink."""
    component: Any = registry.find("sink", system.name)
    config = component.config_type.model_validate({**system.options(), "table": "t"})
    sink = component.create(config, Context("bench", "out"))
    sink.prepare(COLUMNS)
    step = BATCH // ROWS
    with closing(sink), closing(sink.open()) as client:
        for number, start in enumerate(range(0, len(batches), step)):
            batch = BatchId("bench", number)
            writer = sink.writer(client, batch, 0, COLUMNS)
            for rows in batches[start : start + step]:
                assert not writer.write(rows)
            sink.commit(batch, [writer.commit()])


def source_reads(system: System, count: int) -> None:
    """Reads rows by the source."""
    component: Any = registry.find("source", system.name)
    config = component.config_type.model_validate(
        {**system.options(), "table": "t", "cursor_columns": ["id"]}
    )
    source = component.create(config, Context("bench", "in"))
    source.columns = COLUMNS
    with closing(source):
        start = source.initial_offset()
        parts = source.partitions(start, source.latest_offset(start))
        found = sum(rows.num_rows for part in parts for rows in source.read(part, Read()))
    assert found == count


def costs(system: System, batches: Sequence[pa.RecordBatch], count: int) -> dict[str, Cost]:
    """Returns the cost of each side."""
    system.create()
    found = {"client writes": measured(count, lambda: client_writes(system, batches))}
    system.create()
    found["sink"] = measured(count, lambda: sink_writes(system, batches))
    found["client reads"] = measured(count, system.read)
    found["source"] = measured(count, lambda: source_reads(system, count))
    return found


def shown(name: str, found: dict[str, Cost]) -> Iterator[str]:
    """Yields the lines of a system."""
    for client, side in (("client writes", "sink"), ("client reads", "source")):
        theirs, ours = found[client], found[side]
        yield (
            f"{name:<10}{side:<8}{theirs.rows:>12,.0f}{ours.rows:>12,.0f}"
            f"{theirs.rows / ours.rows:>9.2f}{theirs.cpu:>12.2f}{ours.cpu:>10.2f}"
        )


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", metavar="NAME,NAME", help="sqlite, duckdb, postgres")
    given = parser.parse_args()
    only = given.only.split(",") if given.only else None
    batches = batches_of(given.rows)
    results = {}
    if not given.json:
        print(f"{'':<18}{'client':>12}{'penstock':>12}{'slower':>9}{'client CPU':>12}{'CPU s':>10}")
    with started(only) as systems:
        for system in systems:
            found = costs(system, batches, given.rows)
            results[system.name] = {side: asdict(cost) for side, cost in found.items()}
            if not given.json:
                print(*shown(system.name, found), sep="\n", flush=True)
    if given.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()

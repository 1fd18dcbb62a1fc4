"""Rows per second and CPU seconds of each database sink and source, and of the client in a loop.

    ./dev bench databases [--json] [--rows N] [--only NAME,NAME]

Both sides of a line move the same Arrow batches of 10,000 rows into a table with a primary key, if
the system has keys, and commit 100,000 rows at once: the sink, whose batches are merged as in a
run, and the client in its own best way (executemany, COPY, LOAD DATA, Arrow, insert_many,
write_deltalake, append, lines, bulk requests, batches of a prepared statement). The source reads
the table in the order of its key, or of its files, into Arrow batches. The client reads the same
rows: as Arrow from DuckDB, ClickHouse, Delta Lake and Iceberg, as CSV that Arrow parses from
PostgreSQL, as tuples from SQLite, MySQL and JDBC, and as documents from MongoDB, up to the last
one. Both sides send documents to OpenSearch uncompressed, and read them from a point in time as
texts; `elasticsearch` is the same code. Beside the rows, triggers keep totals by day for
`postgres_aggregate`, those of the client for inserts only. `jdbc` is PostgreSQL by its driver,
which both sides call from Python. Both sides have moved a batch before. The servers are those of
the tests: MariaDB, chdb and FerretDB among them. FerretDB reads the whole collection to find its
first or last document, where MongoDB reads an index. CPU seconds are those of this process: a
server has its own. `slower` is the time of the sink or the source for one of the client. Spark is
not part of it; `./dev bench spark_formats` measures the source and the sink `spark`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import options
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from stores.http import InfluxdbPoints, OpensearchIndex
from stores.java import JdbcTable
from stores.lakes import Delta, Iceberg
from stores.local import Duckdb, Sqlite
from stores.servers import (
    ClickHouseTable,
    MongodbCollection,
    MysqlTable,
    PostgresTable,
    PostgresTotals,
)
from stores.system import COLUMNS, ROWS, System

from penstock.engine.tasks.write_limits import rebatch
from penstock.formats.json import Json
from penstock.formats.json.plain import JsonConfig
from penstock.sdk import BatchId, Capability, Context, Read, registry
from servers.clickhouse import ClickHouse
from servers.ferretdb import FerretDb
from servers.influxdb import Influxdb
from servers.mariadb import MariaDb
from servers.opensearch import Opensearch
from servers.postgres import Postgres

BATCH = 100_000
IN_FILES = (Sqlite, Duckdb, Delta, Iceberg)
OF_SERVERS = (
    (PostgresTable, Postgres), (PostgresTotals, Postgres), (MysqlTable, MariaDb),
    (ClickHouseTable, ClickHouse), (MongodbCollection, FerretDb),
    (InfluxdbPoints, Influxdb), (OpensearchIndex, Opensearch), (JdbcTable, Postgres),
)  # fmt: skip
NAMES = ", ".join(kind.name for kind in (*IN_FILES, *(kind for kind, _ in OF_SERVERS)))


@dataclass(frozen=True)
class Cost:
    """Rows per second, and CPU seconds for all rows."""

    rows: float
    cpu: float


@contextmanager
def started(only: Sequence[str] | None) -> Iterator[Iterator[System]]:
    """Yields the systems, each with its server."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
        directory = Path(scratch)

        def systems() -> Iterator[System]:
            for in_file in IN_FILES:
                if only is None or in_file.name in only:
                    yield in_file(directory)
            for of_server, start in OF_SERVERS:
                if only is None or of_server.name in only:
                    with start() as server:
                        yield of_server(directory, server)

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
    config = component.config_type.model_validate(system.of_sink())
    sink = component.create(config, Context("bench", "out"))
    writes_payloads = Capability.BYTES in sink.capabilities
    if writes_payloads:
        sink.format = Json(JsonConfig())
    sink.check_schema(COLUMNS)
    sink.prepare(COLUMNS)
    step, query = BATCH // ROWS, uuid.uuid4().hex
    client = sink.open()
    closed = closing(client) if hasattr(client, "close") else nullcontext()
    with closing(sink), closed:
        for number, start in enumerate(range(0, len(batches), step)):
            batch = BatchId(query, number)
            writer = sink.writer(client, batch, 0, COLUMNS)
            for rows in rebatch(batches[start : start + step], sink.max_rows_per_write):
                payloads = sink.format.encode(rows).payloads if writes_payloads else None
                assert not writer.write(rows, payloads)
            sink.commit(batch, [writer.commit()])


def source_reads(system: System, count: int) -> None:
    """Reads rows by the source."""
    component: Any = registry.find("source", system.name)
    config = component.config_type.model_validate(system.of_source())
    source = component.create(config, Context("bench", "in"))
    source.columns = COLUMNS
    with closing(source):
        start = source.initial_offset()
        parts = source.partitions(start, source.latest_offset(start))
        found = sum(rows.num_rows for part in parts for rows in source.read(part, Read()))
    assert found == count


def warm_up(system: System) -> None:
    """Writes and reads a batch by each side, so that all modules are imported."""
    batches = batches_of(ROWS)
    for write in (client_writes, sink_writes):
        system.create()
        write(system, batches)
    if system.has_source:
        system.read()
        source_reads(system, ROWS)


def costs(system: System, batches: Sequence[pa.RecordBatch], count: int) -> dict[str, Cost]:
    """Returns the cost of each side."""
    warm_up(system)
    system.create()
    found = {"client writes": measured(count, lambda: client_writes(system, batches))}
    system.create()
    found["sink"] = measured(count, lambda: sink_writes(system, batches))
    if not system.has_source:
        return found
    found["client reads"] = measured(count, system.read)
    found["source"] = measured(count, lambda: source_reads(system, count))
    return found


def shown(name: str, found: dict[str, Cost]) -> Iterator[str]:
    """Yields the lines of a system."""
    for client, side in (("client writes", "sink"), ("client reads", "source")):
        if side not in found:
            continue
        theirs, ours = found[client], found[side]
        yield (
            f"{name:<20}{side:<8}{theirs.rows:>12,.0f}{ours.rows:>12,.0f}"
            f"{theirs.rows / ours.rows:>9.2f}{theirs.cpu:>12.2f}{ours.cpu:>10.2f}"
        )


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", metavar="NAME,NAME", help=NAMES)
    given = parser.parse_args()
    only = given.only.split(",") if given.only else None
    batches = batches_of(given.rows)
    results = {}
    if not given.json:
        print(f"{'':<28}{'client':>12}{'penstock':>12}{'slower':>9}{'client CPU':>12}{'CPU s':>10}")
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

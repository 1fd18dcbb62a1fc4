"""Changes per second of the sources of changes, and of the replication client in a loop.

    ./dev bench changes [--json] [--rows N] [--only NAME,NAME]

Both sides read the same inserts and updates of one table, which the server has logged before, as
Arrow batches of 10,000 rows with the types of the table. The client reads them in a loop, which
knows the table, and stores nothing: it decodes the messages of a replication slot of PostgreSQL,
and takes the rows of pymysqlreplication from MariaDB. The source receives them into its durable
journal, and reads them from there. Both parts of the source share this process; in a run the
receiver has its own. CPU seconds are those of this process: a server has its own. `slower` is the
time of the source for one of the client. Spark is not part of it.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import options
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from penstock.sdk import Read, registry
from servers.mariadb import DATABASE, MariaDb
from servers.postgres import Postgres
from table_changes import Changes, changes_of

TRANSACTION = ROWS = 10_000
TYPES = (pa.int64(), pa.string(), pa.float64(), pa.int32())
COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), price DOUBLE PRECISION, count INT"
RAW = "made_up_client"


@dataclass(frozen=True)
class Cost:
    """Changes per second, and CPU seconds for all changes."""

    changes: float
    cpu: float


def batch_of(rows: Sequence[tuple[Any, ...]]) -> int:
    """Makes an Arrow batch of rows. Returns their number."""
    arrays = map(pa.array, zip(*rows, strict=True), TYPES)
    return pa.record_batch([*arrays], names=["id", "name", "price", "count"]).num_rows


class System(ABC):
    """A database, its changes and its replication client."""

    name: ClassVar[str]
    table: ClassVar[str]
    numbers: ClassVar[str]
    """The FROM item of the numbers from one parameter to another as `n`."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self._db = server.client()

    def execute(self, statement: str) -> None:
        """Executes a statement."""
        with self._db.cursor() as cursor:
            cursor.execute(statement)

    def change(self, rows: int) -> int:
        """Inserts rows, and updates each one. Returns the number of changes."""
        for first in range(1, rows + 1, TRANSACTION):
            last = min(rows, first + TRANSACTION - 1)
            numbers = self.numbers.format(first, last)
            self.execute(
                f"INSERT INTO {self.table} "
                f"SELECT n, concat('name of ', n), n / 7.0, n % 1000 FROM {numbers}"
            )
            self.execute(
                f"UPDATE {self.table} SET count = count + 1 WHERE id BETWEEN {first} AND {last}"
            )
        return 2 * rows

    def config(self) -> dict[str, Any]:
        """Returns the options of the source."""
        return {**self.server.login, "table": self.table, "changes": True}

    @abstractmethod
    def prepare(self) -> None:
        """Marks the position from which the client reads."""

    @abstractmethod
    def loop(self) -> Iterator[int]:
        """Yields the numbers of the changes that have arrived."""


class PostgresChanges(System):
    name = "postgres"
    table = "public.made_up"
    numbers = "generate_series({}, {}) AS s (n)"

    def prepare(self) -> None:
        self.execute(f"CREATE PUBLICATION {RAW} FOR TABLE {self.table}")
        self.execute(f"SELECT pg_create_logical_replication_slot('{RAW}', 'pgoutput')")

    def loop(self) -> Iterator[int]:
        with closing(self.server.client(replication="database")) as client:
            connection = client.pgconn
            connection.send_query(
                f"START_REPLICATION SLOT {RAW} LOGICAL 0/0 "
                f"(proto_version '1', publication_names '{RAW}')".encode()
            )
            connection.get_result()
            rows = []
            while True:
                _, data = connection.get_copy_data(0)
                # A message begins after a header of 25 bytes.
                if data[:1] == b"w" and data[25] in b"IU":
                    id_, name, price, number = _texts(bytes(data), 31)
                    rows.append((int(id_), name.decode(), float(price), int(number)))
                    if len(rows) == ROWS:
                        yield batch_of(rows)
                        rows = []


def _texts(data: bytes, position: int) -> list[bytes]:
    """Returns the values of a new row, which has no nulls."""
    (count,) = _INT16.unpack_from(data, position)
    position += _INT16.size
    texts = []
    for _ in range(count):
        (length,) = _INT32.unpack_from(data, position + 1)
        start = position + 1 + _INT32.size
        position = start + length
        texts.append(data[start:position])
    return texts


_INT16, _INT32 = struct.Struct(">H"), struct.Struct(">I")


class MariadbChanges(System):
    name = "mysql"
    table = f"`{DATABASE}`.made_up"
    numbers = "(SELECT seq AS n FROM seq_{}_to_{}) AS s"

    def config(self) -> dict[str, Any]:
        return {**super().config(), "table": "made_up"}

    def prepare(self) -> None:
        with self._db.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            self._file, self._position = cursor.fetchone()[:2]

    def loop(self) -> Iterator[int]:
        from pymysqlreplication import BinLogStreamReader
        from pymysqlreplication.row_event import UpdateRowsEvent, WriteRowsEvent

        login = {"host": "127.0.0.1", "port": self.server.port, "user": self._db.user.decode(),
                 "passwd": self._db.password.decode()}  # fmt: skip
        reader = BinLogStreamReader(
            login, server_id=4711, blocking=True, log_file=self._file, log_pos=self._position,
            resume_stream=True, only_events=[WriteRowsEvent, UpdateRowsEvent],
        )  # fmt: skip
        with closing(reader):
            rows = []
            for event in reader:
                rows += [
                    tuple((row.get("after_values") or row["values"]).values()) for row in event.rows
                ]
                if len(rows) >= ROWS:
                    yield batch_of(rows)
                    rows = []


def measured(count: int, function: Callable[[], Any]) -> Cost:
    """Returns the cost of a call."""
    began, cpu = time.perf_counter(), time.process_time()
    function()
    return Cost(count / (time.perf_counter() - began), time.process_time() - cpu)


def client_reads(system: System, count: int) -> None:
    """Reads changes by the client."""
    with closing(system.loop()) as loop:  # type: ignore[type-var]
        found = 0
        for number in loop:
            found += number
            if found >= count:
                return


def source_reads(changes: Changes, count: int) -> None:
    """Receives changes, and reads them from the journal."""
    source, found = changes.source, 0
    start = source.latest_offset(source.initial_offset())
    changes.start()
    while found < count:
        end = source.latest_offset(start)
        read = Read()
        found += sum(
            batch.num_rows
            for partition in source.partitions(start, end)
            for batch in source.read(partition, read)
        )
        assert not read.bad and not changes.errors, (read.bad, changes.errors)
        start = end
        time.sleep(0.01)
    changes.stop()
    assert found == count


def costs(system: System, rows: int, state: Path) -> dict[str, Cost]:
    """Returns the cost of each side."""
    system.execute(f"CREATE TABLE {system.table} ({COLUMNS})")
    system.execute(f"INSERT INTO {system.table} VALUES (0, 'snapshot', 0.0, 0)")
    component: Any = registry.find("source", system.name)
    config = component.config_type.model_validate(system.config())
    changes = changes_of(component, config, state, in_thread=True)
    changes.start()
    changes.until(lambda: changes.received == 1, 30)
    changes.stop()
    system.prepare()
    count = system.change(rows)
    return {
        "client": measured(count, lambda: client_reads(system, count)),
        "source": measured(count, lambda: source_reads(changes, count)),
    }


SYSTEMS: dict[str, tuple[type[System], Callable[[], AbstractContextManager[Any]]]] = {
    PostgresChanges.name: (PostgresChanges, Postgres),
    MariadbChanges.name: (MariadbChanges, MariaDb),
}


def main() -> None:
    parser = options.parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", metavar="NAME,NAME", help="postgres, mysql")
    given = parser.parse_args()
    only = given.only.split(",") if given.only else [*SYSTEMS]
    results = {}
    if not given.json:
        print(f"{'':<10}{'client':>12}{'penstock':>12}{'slower':>9}{'client CPU':>12}{'CPU s':>10}")
    for name in only:
        class_, start = SYSTEMS[name]
        with start() as server, tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            found = costs(class_(server), given.rows, Path(scratch))
        results[name] = {side: asdict(cost) for side, cost in found.items()}
        theirs, ours = found["client"], found["source"]
        if not given.json:
            print(
                f"{name:<10}{theirs.changes:>12,.0f}{ours.changes:>12,.0f}"
                f"{theirs.changes / ours.changes:>9.2f}{theirs.cpu:>12.2f}{ours.cpu:>10.2f}",
                flush=True,
            )
    if given.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()

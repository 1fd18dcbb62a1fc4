"""Kills a pipeline of database changes and the databases, and compares tables row for row.

    python tests/chaos/kill_changes.py [--operations N] [--rows N] [--kills N] [--seed N] [--phases]

The changes of a table in PostgreSQL and of one in MariaDB go to tables of PostgreSQL, SQLite,
ClickHouse and Delta Lake, by one file. Random transactions change both tables from the start of the
first snapshot on, and each table gets a further column. The run is killed by SIGKILL, at random
either the driver alone or all processes at once, and started again, and each database is killed
once. In the end all tables are those of the origins. With `--phases` a source reads the rows of
the table by its key, and then the changes without a snapshot.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from change_workload import MariaDbTable, Origin, PostgresTable, Rows, Workload, wait_until
from clickhouse_connect.driver.exceptions import DatabaseError
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from psycopg.errors import UndefinedColumn, UndefinedTable
from victim import Victim

from servers.clickhouse import DATABASE, ClickHouse
from servers.mariadb import MariaDb
from servers.postgres import PASSWORD, Postgres

COLUMNS = "id, n, name, price, at, extra"
LONGEST = 200.0
"""Seconds until the targets have the rows of the origins."""


@dataclass
class Copies:
    """The targets of the changes of one table."""

    origin: Origin
    directory: Path
    schema: str
    postgres: Postgres
    clickhouse: ClickHouse

    @property
    def name(self) -> str:
        return self.origin.name

    def sinks(self) -> str:
        """The part of the pipeline with the sinks."""
        database, warehouse = self.postgres.login, self.clickhouse.login
        targets = {
            "postgres": f"url: '{database['url']}', auth: {{username: "
            f"{database['auth']['username']}, password: '${{SHOP_PASSWORD}}'}}, "
            f"table: {self.schema}.{self.name}",
            "sqlite": f"path: {self.name}.db, table: items",
            "clickhouse": f"url: '{warehouse['url']}', auth: {{username: "
            f"{warehouse['auth']['username']}, password: '${{SHOP_PASSWORD}}'}}, "
            f"table: {self._warehouse_table}",
            "delta": f"path: {self.name}.delta",
        }
        common = f"from: {self.name}, mode: upsert, schema_changes: apply"
        return "".join(
            f"  {self.name}_{type_}: {{type: {type_}, {common}, {options}}}\n"
            for type_, options in targets.items()
        )

    @property
    def _warehouse_table(self) -> str:
        return f"{self.schema}_{self.name}"

    def tables(self) -> dict[str, Rows]:
        """The rows of each target."""
        return {
            "postgres": self._in_postgres(),
            "sqlite": self._in_sqlite(),
            "clickhouse": self._in_clickhouse(),
            "delta": self._in_delta(),
        }

    def _in_postgres(self) -> Rows:
        with self.postgres.client(options="-c timezone=UTC") as client:
            return _rows(client.execute(f"SELECT {COLUMNS} FROM {self.schema}.{self.name}"))

    def _in_sqlite(self) -> Rows:
        with closing(sqlite3.connect(self.directory / f"{self.name}.db")) as db:
            return _rows(db.execute(f"SELECT {COLUMNS} FROM items"))

    def _in_clickhouse(self) -> Rows:
        return _rows(self.clickhouse(f"SELECT {COLUMNS} FROM {DATABASE}.{self._warehouse_table}"))

    def _in_delta(self) -> Rows:
        table = DeltaTable(self.directory / f"{self.name}.delta").to_pyarrow_table()
        return _rows(tuple(row.values()) for row in table.select(COLUMNS.split(", ")).to_pylist())

    def differences(self) -> Iterator[str]:
        """Compares the targets with the origin, and yields what differs."""
        expected = _rows((key, *row) for key, row in self.origin.rows().items())
        for target, found in self.tables().items():
            lost = {key: row for key, row in expected.items() if found.get(key) != row}
            extra = found.keys() - expected.keys()
            if lost or extra:
                some = [(key, row, found.get(key)) for key, row in list(lost.items())[:3]]
                yield f"{self.name} to {target}: {len(lost)} other rows, as {some}, "
                yield f"and {len(extra)} that are not there, as {sorted(extra)[:5]}"

    def are_equal(self) -> bool:
        """Whether all targets have the rows of the origin; a target or a column may be missing."""
        missing = (
            sqlite3.OperationalError, UndefinedTable, UndefinedColumn, DatabaseError,
            TableNotFoundError, KeyError,
        )  # fmt: skip
        try:
            return not any(True for _ in self.differences())
        except missing:
            return False


def _rows(found: Any) -> Rows:
    return {
        int(id_): (n, name, None if price is None else Decimal(str(price)), _time(at), extra)
        for id_, n, name, price, at, extra in found
    }


def _time(value: Any) -> datetime | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, int):
        value = datetime.fromtimestamp(value // 1_000_000, UTC).replace(
            microsecond=value % 1_000_000
        )
    if value is not None and value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return value


def create(
    directory: Path, servers: Mapping[str, Any], rows: int, phased: Collection[str] = ()
) -> list[Copies]:
    """Creates a table in PostgreSQL and MariaDB, and a pipeline with four sinks for each.

    The sources of the `phased` origins are in phases.
    """
    postgres = servers["postgres"]
    schema = postgres.new_schema()
    all_copies = [
        Copies(origin, directory, schema, postgres, servers["clickhouse"])
        for origin in (PostgresTable(postgres), MariaDbTable(servers["mariadb"]))
    ]
    for each in all_copies:
        each.origin.create(rows)
    sources = "".join(
        f"  {each.name}: {{{_source(each.origin, in_phases=each.name in phased)}}}\n"
        for each in all_copies
    )
    sinks = "".join(each.sinks() for each in all_copies)
    (directory / "pipeline.yaml").write_text(
        f"name: readings\nruntime: {{state: state}}\nsources:\n{sources}sinks:\n{sinks}"
    )
    return all_copies


def _source(origin: Origin, *, in_phases: bool) -> str:
    """Returns the options of a source of the rows and the changes of a table."""
    changes = origin.source()
    if not in_phases:
        return changes
    rows, _, _ = changes.partition(", changes: true")
    phases = f"{{{rows}, max_records: 2500}}, {{{changes}, snapshot: false}}"
    return f"type: hybrid, columns_of: last, phases: [{phases}]"


@contextmanager
def workloads(
    all_copies: Sequence[Copies], operations: int, *, parts: int, keys: int, seed: int
) -> Iterator[list[Workload]]:
    """Starts a workload on each origin, and ends them. Raises the errors of their statements."""
    started = [
        Workload(each.origin, operations, parts=parts, keys=keys, seed=seed) for each in all_copies
    ]
    for each in started:
        each.start()
    try:
        yield started
    finally:
        for each in started:
            each.ended.set()
            each.join()
    for each in started:
        if each.error is not None:
            raise each.error


def await_equal(all_copies: Sequence[Copies]) -> None:
    """Waits until all targets are equal to their origins. Raises AssertionError."""
    try:
        wait_until(lambda: all(each.are_equal() for each in all_copies), LONGEST, "different")
    except AssertionError:
        texts = [text for each in all_copies for text in each.differences()]
        raise AssertionError("".join(texts)) from None


def kill_changes(
    directory: Path, servers: Mapping[str, Any], *, operations: int, rows: int, kills: int,
    seed: int, phases: bool,
) -> None:  # fmt: skip
    """Kills the run and the databases, lets the run catch up, and compares."""
    dice = random.Random(seed)
    postgres, mariadb = servers["postgres"], servers["mariadb"]
    all_copies = create(directory, servers, rows, ["postgres", "mariadb"] if phases else [])
    victim = Victim(directory)
    try:
        parts = kills + 1
        with workloads(all_copies, operations, parts=parts, keys=3 * rows, seed=seed) as running:
            for _ in range(kills):
                process = victim.run()
                batches = victim.lives(process, dice)
                assert process.poll() is None, victim.log()[-3000:]
                killed = victim.kill(process, dice)
                done = ", ".join(f"{each.origin.name} {each.done}" for each in running)
                print(f"killed {killed} after {batches} batches; operations: {done}", flush=True)
                for each in running:
                    each.allow()
            process = victim.run()
            for server in (postgres, mariadb):
                time.sleep(dice.random() * 5)
                kill_server(server, dice)
            for each in running:
                each.join()
            await_equal(all_copies)
            process.terminate()
            victim.ends(process)
            await_equal(all_copies)
    finally:
        victim.kill_all()
    assert "Traceback" not in victim.log()


def kill_server(server: Any, dice: random.Random) -> None:
    """Kills a server and starts it again."""
    server.kill()
    time.sleep(dice.random())
    server.start()
    print(f"killed {server.name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=100_000, help="on each origin")
    parser.add_argument("--rows", type=int, default=50_000, help="before the first run")
    parser.add_argument("--kills", type=int, default=5, help="of the run")
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--phases", action="store_true", help="read the rows, then the changes")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="kill-changes-"))
    print(f"seed {given.seed}, in {scratch}", flush=True)
    os.environ["SHOP_PASSWORD"] = PASSWORD
    began = time.monotonic()
    with ExitStack() as stack:
        servers = {
            server.name: stack.enter_context(server)
            for server in (Postgres(), MariaDb(), ClickHouse())
        }
        names = ("operations", "rows", "kills", "seed", "phases")
        options = {name: getattr(given, name) for name in names}
        try:
            kill_changes(scratch, servers, **options)
        except AssertionError as error:
            raise SystemExit(f"wrong: {error}") from None
    shutil.rmtree(scratch)
    print(f"all tables are those of the origins ({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main()

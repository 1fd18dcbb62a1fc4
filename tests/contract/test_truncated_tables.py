"""Tables that are truncated while their changes are copied to tables, without Spark."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from database_tables import read
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.mysql.changes import snapshot as mysql_snapshot
from penstock.connectors.postgres import PostgresSink, PostgresSource
from penstock.connectors.postgres.changes import snapshot as postgres_snapshot
from penstock.connectors.sqlite import SqliteSink, SqliteSource
from penstock.core.errors import Permanent
from penstock.sdk import BatchId, Context, Read, ReplayableSource
from penstock.sdk.database.changes.progress import DONE, Progress
from penstock.sdk.operations import split_operations
from servers.mariadb import MariaDb
from servers.postgres import Postgres
from table_changes import Changes, changes_of, fails, pauses_of_writer

COLUMNS = pa.schema([("id", pa.int32()), ("n", pa.int32())])
CHUNK_ROWS, ROWS, KEYS = 100, 1500, 3200
STATEMENTS = (
    "UPDATE t SET n = n + 1 WHERE id BETWEEN {0} AND {0} + 5",
    "DELETE FROM t WHERE id = {0}",
    "UPDATE t SET id = id + 4000 WHERE id = {0}",
)
Rows = dict[int, int]


@dataclass
class Target:
    """A table that batches are written to, and the source that reads it."""

    sink: Any
    source: Any
    options: dict[str, Any]

    def write(self, batch: BatchId, rows: pa.RecordBatch, end: str) -> None:
        """Writes a batch as the engine does, until the `end` of the process."""
        config = self.sink.config_type.model_validate(self.options)
        sink = self.sink.create(config, Context(node="copy"))
        sink.mode, sink.primary_key = "upsert", ("id",)
        sink.prepare(COLUMNS)
        receipts = []
        if rows.num_rows:
            with closing(sink.open()) as client:
                writer = sink.writer(client, batch, 0, COLUMNS)
                assert not writer.write(*_arguments(rows))
                if end == "before the rows are committed":
                    writer.abort()
                    return
                receipts.append(writer.commit())
        if end != "after the rows are committed":
            sink.commit(batch, receipts)

    def rows(self) -> Rows:
        source = self.source.create(
            self.source.config_type.model_validate(self.options), Context(node="copy")
        )
        with closing(source):
            if source.infer_schema() is None:
                return {}
            source.columns = COLUMNS
            found, errors, _ = read(source)
        assert errors == []
        return {row["id"]: row["n"] for row in found}


def _arguments(rows: pa.RecordBatch) -> tuple[Any, ...]:
    values, operations = split_operations(rows, "_op")
    return values.select(COLUMNS.names), None, operations


@dataclass
class Copy:
    """A query from a source to targets, whose process ends at any moment of a batch."""

    source: ReplayableSource[Any]
    targets: Sequence[Target]
    rng: random.Random = field(default_factory=lambda: random.Random(5))
    ends: Sequence[str] = ()
    query: str = "q"
    number: int = 0
    truncated: int = 0
    repeated: int = 0

    def __post_init__(self) -> None:
        self.start = self.source.initial_offset()

    def write(self) -> bool:
        """Writes the next batch, which is repeated after each end of the process."""
        latest = self.source.latest_offset(self.start)
        end = self.source.limit_batch(self.start, latest)
        if end == self.start:
            return False
        truncates = self.source.begins_truncated(self.start, end)
        batch = BatchId(self.query, self.number, truncates=truncates)
        rows = self._rows(end)
        while True:
            ends = [self.rng.choice(self.ends) if self.ends else "" for _ in self.targets]
            for target, moment in zip(self.targets, ends, strict=True):
                target.write(batch, rows, moment)
            if not any(ends):
                break
            self.repeated += truncates
        self.start, self.number = end, self.number + 1
        self.truncated += truncates
        return True

    def _rows(self, end: Any) -> pa.RecordBatch:
        """Returns the last row of each key."""
        found = Read()
        parts = [
            part
            for partition in self.source.partitions(self.start, end)
            for part in self.source.read(partition, found)
        ]
        assert [bad.error for bad in found.bad] == []
        columns = self.source.columns
        assert columns is not None
        last = {row["id"]: row for part in parts for row in part.to_pylist()}
        return pa.RecordBatch.from_pylist([*last.values()], schema=columns)


@dataclass
class Database:
    """A database whose table `t` is changed.

    A chunk has its position by the function `position_of_chunk` of a module, after its rows.
    """

    changes: Callable[..., Changes]
    connect: Callable[[], Any]
    insert: str
    position_of_chunk: tuple[Any, str]

    def execute(self, *statements: str) -> list[tuple[int, int]]:
        with closing(self.connect()) as client, closing(client.cursor()) as cursor:
            for statement in statements:
                cursor.execute(statement)
            rows = list(cursor.fetchall()) if cursor.description else []
            client.commit()
            return rows

    def rows(self) -> Rows:
        return dict(self.execute("SELECT id, n FROM t"))

    @contextmanager
    def changing(self, rng: random.Random) -> Iterator[None]:
        """Changes the table by transactions, each twentieth of which truncates it."""
        ended = threading.Event()
        statements = (self.insert,) * 4 + STATEMENTS

        def work() -> None:
            pauses = pauses_of_writer()
            with closing(self.connect()) as client:
                while not ended.is_set():
                    texts = [rng.choice(statements) for _ in range(rng.randrange(1, 9))]
                    if rng.random() < 0.05:
                        texts[rng.randrange(len(texts))] = "TRUNCATE TABLE t"
                    with closing(client.cursor()) as cursor, suppress(Exception):
                        for text in texts:
                            cursor.execute(text.format(rng.randrange(1, KEYS)))
                    client.rollback() if rng.random() < 0.2 else client.commit()
                    time.sleep(next(pauses))

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield
        finally:
            ended.set()
            worker.join()


@pytest.fixture
def targets(postgres: Postgres, tmp_path: Path) -> Callable[[str], list[Target]]:
    schema = postgres.new_schema()

    def make(name: str) -> list[Target]:
        table = {**postgres.login, "table": f"{schema}.{name}"}
        file = {"path": str(tmp_path / "copy.db"), "table": name}
        return [
            Target(PostgresSink, PostgresSource, table),
            Target(SqliteSink, SqliteSource, file),
        ]

    return make


@pytest.fixture
def of_postgres(postgres: Postgres, tmp_path: Path, monkeypatch: Any) -> Iterator[Database]:
    schema = postgres.new_schema()
    monkeypatch.setattr(postgres_snapshot, "CHUNK_ROWS", CHUNK_ROWS)
    made: list[Changes] = []

    def changes(**options: Any) -> Changes:
        given = {**postgres.login, "table": f"{schema}.t", "changes": True, "slot": schema}
        config = PostgresSource.config_type.model_validate({**given, **options})
        made.append(changes_of(PostgresSource, config, tmp_path / "state", in_thread=True))
        return made[-1]

    def connect() -> Any:
        client = postgres.client(options=f"-c search_path={schema}")
        client.autocommit = False
        return client

    insert = "INSERT INTO t VALUES ({0}, 0) ON CONFLICT DO NOTHING"
    yield Database(changes, connect, insert, (postgres_snapshot, "mark_position"))
    for each in made:
        with suppress(AttributeError):
            each.stop()
    with postgres.client() as client, suppress(psycopg.Error):
        client.execute("SELECT pg_drop_replication_slot(%s)", (schema,))


@pytest.fixture
def of_mariadb(mariadb: MariaDb, tmp_path: Path, monkeypatch: Any) -> Iterator[Database]:
    database = mariadb.new_database()
    monkeypatch.setattr(mysql_snapshot, "CHUNK_ROWS", CHUNK_ROWS)
    made: list[Changes] = []

    def changes(**options: Any) -> Changes:
        given = {**mariadb.login, "table": f"{database}.t", "changes": True}
        config = MysqlSource.config_type.model_validate({**given, **options})
        made.append(changes_of(MysqlSource, config, tmp_path / "state", in_thread=True))
        return made[-1]

    def connect() -> Any:
        return mariadb.client(database=database, autocommit=False)

    insert = "INSERT IGNORE INTO t VALUES ({0}, 0)"
    yield Database(changes, connect, insert, (mysql_snapshot, "log_end"))
    for each in made:
        with suppress(AttributeError):
            each.stop()


@pytest.fixture(params=["of_postgres", "of_mariadb"])
def database(request: Any) -> Any:
    return request.getfixturevalue(request.param)


ENDS = ("", "", "", "before the rows are committed", "after the rows are committed", "at the end")


def test_random_changes_and_truncations(
    database: Database, targets: Callable[[str], list[Target]]
) -> None:
    """Copies equal the table after ends of both processes, by batches of any size."""
    values = ", ".join(f"({n * 2}, 0)" for n in range(1, ROWS + 1))
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", f"INSERT INTO t VALUES {values}")
    changes = database.changes(on_truncate="apply", max_records=400)
    copy = Copy(changes.source, targets("t"), ends=ENDS)
    with database.changing(random.Random(3)):
        changes.start()
        for truncated in (2, 4, 8):
            changes.until(lambda count=truncated: copy.write() and copy.truncated >= count)
            changes.stop()
            changes.start()
        changes.until(lambda: copy.write() and copy.repeated >= 4)
    expected = database.rows()

    def is_copied() -> bool:
        while copy.write():
            pass
        return all(target.rows() == expected for target in copy.targets)

    changes.until(is_copied)
    changes.stop()
    for size in (11, None):
        source = changes.source
        source.config = source.config.model_copy(update={"max_records": size})
        again = Copy(source, targets(f"t_{size}")[1:], query=f"by {size}")
        while again.write():
            pass
        assert again.targets[0].rows() == expected and again.truncated == copy.truncated


def test_a_truncation_while_a_chunk_is_read(
    database: Database, targets: Callable[[str], list[Target]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the chunk that were read before the truncation are left out."""
    values = ", ".join(f"({n}, 0)" for n in range(CHUNK_ROWS + 50))
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", f"INSERT INTO t VALUES {values}")
    module, name = database.position_of_chunk
    original, calls = getattr(module, name), []

    def position(*arguments: Any) -> Any:
        if not calls:
            calls.append(
                database.execute("TRUNCATE TABLE t", "INSERT INTO t VALUES (7, 1), (900, 1)")
            )
        return original(*arguments)

    monkeypatch.setattr(module, name, position)
    changes = database.changes(on_truncate="apply")
    copy = Copy(changes.source, targets("t"))
    changes.start()
    expected = {7: 1, 900: 1}
    changes.until(
        lambda: copy.write() and all(target.rows() == expected for target in copy.targets)
    )
    await_end_of_snapshot(changes)
    while copy.write():
        pass
    assert [target.rows() for target in copy.targets] == [expected] * 2
    assert copy.truncated == 1 and changes.received <= 5


def test_a_truncation_that_has_ended_a_run(
    database: Database, targets: Callable[[str], list[Target]]
) -> None:
    """It is applied once the option is set."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 0)")
    failing = database.changes()
    failing.start()
    failing.until(lambda: failing.received == 1)
    await_end_of_snapshot(failing)
    database.execute(
        "INSERT INTO t VALUES (2, 0)", "TRUNCATE TABLE t", "INSERT INTO t VALUES (1, 1)"
    )
    assert "on_truncate: apply" in str(fails(failing, "was truncated").hint)
    changes = database.changes(on_truncate="apply")
    changes.start()
    copy = Copy(changes.source, targets("t"))
    changes.until(lambda: copy.write() and copy.truncated == 1 and copy.targets[1].rows() != {})
    assert [target.rows() for target in copy.targets] == [{1: 1}] * 2
    assert changes.received == 4


def await_end_of_snapshot(changes: Changes) -> None:
    def is_read() -> bool:
        progress = Progress.read(changes.source._reader)
        return progress is not None and progress.chunk == DONE

    changes.until(is_read)


def test_rows_that_others_refer_to(postgres: Postgres) -> None:
    """The truncation is an error that names the table, and removes no row."""
    schema = postgres.new_schema()
    target = Target(PostgresSink, PostgresSource, {**postgres.login, "table": f"{schema}.t"})
    row = pa.record_batch({"id": [1], "n": [1], "_op": ["i"]})
    row = row.cast(pa.schema([*COLUMNS, ("_op", pa.string())]))
    target.write(BatchId("q", 0), row, "")
    with postgres.client(options=f"-c search_path={schema}") as client:
        client.execute("CREATE TABLE other (id int REFERENCES t)")
        client.execute("INSERT INTO other VALUES (1)")
        for rows in (row, row.slice(0, 0)):
            with pytest.raises(Permanent, match="cannot remove the rows of the table"):
                target.write(BatchId("q", 1, truncates=True), rows, "")
        assert target.rows() == {1: 1}
        client.execute("DROP TABLE other")
    target.write(BatchId("q", 1, truncates=True), row.slice(0, 0), "")
    assert target.rows() == {}

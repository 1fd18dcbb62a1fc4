"""Databases with a server of the tests."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from servers.clickhouse import DATABASE as CLICKHOUSE_DATABASE
from servers.clickhouse import PASSWORD as CLICKHOUSE_PASSWORD
from servers.clickhouse import USER as CLICKHOUSE_USER
from servers.clickhouse import ClickHouse
from servers.ferretdb import DATABASE, FerretDb
from servers.mariadb import MariaDb
from servers.postgres import Postgres
from stores.system import COLUMNS, QUERY, ROWS, System


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
        with self.server.client() as db:
            self.copy(db, batches)

    def copy(self, db: Any, batches: Sequence[pa.RecordBatch]) -> None:
        """Writes batches by COPY."""
        with db.cursor() as cursor, cursor.copy("COPY t FROM STDIN (FORMAT csv)") as copy:
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


class PostgresTotals(PostgresTable):
    """Totals by day of the rows of a table. A trigger of the client adds the rows of each COPY."""

    name = "postgres_aggregate"
    has_source = False

    def of_sink(self) -> dict[str, Any]:
        return {
            **super().of_sink(),
            "aggregate_table": "totals",
            "group_by": {"day": {"column": "changed", "type": "DATE"}},
            "aggregates": {
                "rows": {"function": "count"},
                "total": {"function": "sum", "column": "count"},
            },
        }

    def create(self) -> None:
        with self.server.client() as db:
            db.execute("DROP TABLE IF EXISTS totals")
        super().create()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with self.server.client() as db, db.transaction():
            if db.execute("SELECT to_regclass('totals')").fetchone() == (None,):
                db.execute(_TOTALS)
            self.copy(db, batches)


_TOTALS = """
CREATE TABLE totals ("day" DATE PRIMARY KEY, "rows" BIGINT, "total" NUMERIC);
CREATE OR REPLACE FUNCTION add_totals() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO totals AS t
  SELECT ("changed" AT TIME ZONE 'UTC')::date, count(*), sum("count") FROM added GROUP BY 1
  ON CONFLICT ("day") DO UPDATE
  SET "rows" = t."rows" + excluded."rows", "total" = t."total" + excluded."total";
  RETURN NULL; END $$;
CREATE TRIGGER add_totals AFTER INSERT ON t REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION add_totals()
"""
"""Aggregates of inserted rows: the triggers of the sink also maintain them for other changes."""


class MysqlTable(System):
    name = "mysql"

    def __init__(self, directory: Path, server: MariaDb) -> None:
        self.server = server

    def options(self) -> dict[str, Any]:
        return self.server.login

    def create(self) -> None:
        with self.server.client() as db, db.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS t")
            cursor.execute(
                "CREATE TABLE t (id BIGINT PRIMARY KEY, name LONGTEXT, price DOUBLE, "
                "count INT, changed DATETIME(6))"
            )

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Writes by LOAD DATA, for which the client reads a file."""
        client = self.server.client(local_infile=True, autocommit=False, read_timeout=600)
        with client as db, db.cursor() as cursor, tempfile.NamedTemporaryFile() as file:
            for rows in batches:
                times = rows["changed"].cast(pa.timestamp("us"))
                plain = rows.set_column(4, "changed", times)
                with csv.CSVWriter(
                    file.name, plain.schema, write_options=csv.WriteOptions(include_header=False)
                ) as writer:
                    writer.write(plain)
                cursor.execute(
                    f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE t CHARACTER SET utf8mb4 "
                    "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY ''"
                )
            db.commit()

    def read(self) -> int:
        from pymysql.cursors import SSCursor

        with self.server.client(read_timeout=600) as db, SSCursor(db) as cursor:
            cursor.execute("SELECT * FROM t ORDER BY id")
            return sum(map(len, iter(lambda: cursor.fetchmany(ROWS), ())))


class ClickHouseTable(System):
    name = "clickhouse"

    def __init__(self, directory: Path, server: ClickHouse) -> None:
        self.server = server

    def options(self) -> dict[str, Any]:
        return {**self.server.login, "timeout": "10m"}

    def create(self) -> None:
        self.server(
            f"DROP TABLE IF EXISTS {CLICKHOUSE_DATABASE}.t",
            f"CREATE TABLE {CLICKHOUSE_DATABASE}.t (id Int64, name String, price Float64, "
            "count Int32, changed DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY id",
        )

    def _client(self) -> Any:
        import clickhouse_connect

        return clickhouse_connect.get_client(
            host="127.0.0.1", port=self.server.port, username=CLICKHOUSE_USER,
            password=CLICKHOUSE_PASSWORD, database=CLICKHOUSE_DATABASE, compress=False,
            autogenerate_session_id=False,
        )  # fmt: skip

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with closing(self._client()) as client:
            client.insert_arrow("t", pa.Table.from_batches(batches))

    def read(self) -> int:
        with closing(self._client()) as client:
            return int(client.query_arrow("SELECT * FROM t ORDER BY id").num_rows)


class MongodbCollection(System):
    name = "mongodb"

    def __init__(self, directory: Path, server: FerretDb) -> None:
        self.server = server

    def options(self) -> dict[str, Any]:
        return {**self.server.login, "collection": "t", "id_column": "id"}

    def of_sink(self) -> dict[str, Any]:
        return {**self.options(), "microseconds": "truncate"}

    def of_source(self) -> dict[str, Any]:
        return self.options()

    def create(self) -> None:
        with closing(self.server.client(600)) as client:
            client[DATABASE].t.drop()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        with closing(self.server.client(600)) as client:
            for rows in batches:
                documents = rows.rename_columns(["_id", *rows.schema.names[1:]]).to_pylist()
                client[DATABASE].t.insert_many(documents, ordered=False)

    def read(self) -> int:
        """Reads up to the last document, so that the same documents can be read again."""
        with closing(self.server.client(600)) as client:
            collection = client[DATABASE].t
            (last,) = collection.find().sort("_id", -1).limit(1)
            found = collection.find({"_id": {"$lte": last["_id"]}}).sort("_id", 1)
            return sum(1 for _ in found)

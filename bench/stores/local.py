"""Databases in a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from stores.system import QUERY, ROWS, System


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

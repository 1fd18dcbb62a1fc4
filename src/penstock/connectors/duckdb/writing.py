"""Connections that write rows, and find the rows that DuckDB rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.duckdb.config import DuckdbSinkConfig
from penstock.connectors.duckdb.connection import DuckdbConnection
from penstock.connectors.duckdb.journal import Journal
from penstock.connectors.duckdb.trial import Trial
from penstock.connectors.duckdb.types import union_item
from penstock.connectors.duckdb.values import check_values
from penstock.core.errors import RecordError, Rejected
from penstock.sdk.database import TableName
from penstock.sdk.database.conflicts import ConflictConnection
from penstock.sdk.database.types import declared_type

ROWS = "temp.penstock_rows"


class WritingConnection(ConflictConnection, DuckdbConnection):
    """A connection that writes Arrow batches.

    DuckDB has no savepoints, and an error ends the transaction. `restore` begins it again and
    executes its statements again, from a journal. From then on rows are tried before they are
    written (see `Trial`), so that rejected rows do not end the transaction.
    """

    def __init__(self, config: DuckdbSinkConfig) -> None:
        super().__init__(config, read_only=False)
        self.conflicts = config
        self._journal = Journal()
        self._targets: dict[TableName, pa.Schema] = {}
        self._trial: Trial | None = None
        self._is_careful = self._has_failed = False

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        count = super().execute(statement, parameters)
        self._journal.add(statement, parameters)
        return count

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        self._write(table, rows)

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        self._write(table, rows, self.conflict_clause(rows.schema.names, key), key)

    def delete(self, table: TableName, keys: pa.RecordBatch) -> None:
        quoted = map(self.dialect.quote, keys.schema.names)
        equal = " AND ".join(f"t.{name} = r.{name}" for name in quoted)
        target = self.dialect.table(table)
        self._apply(f"DELETE FROM {target} AS t USING {ROWS} AS r WHERE {equal}", keys)

    def savepoint(self) -> None:
        """Does nothing: `restore` executes the journal."""

    def release(self) -> None:
        """Does nothing."""

    def restore(self) -> None:
        """Begins the transaction again without the statement that failed.

        The rows before it are written again, so that the transaction stays one: it has the batch in
        the ledger and all valid rows. Rows of the rest of the batch are tried first.
        """
        if not self._has_failed:
            return
        self._has_failed, self._is_careful = False, True
        self._call(self.client.execute, "ROLLBACK")
        self._call(self.client.execute, "BEGIN")
        for statement, parameters, rows in self._journal:
            if rows is None:
                self._call(self.client.execute, statement, [*parameters])
            else:
                self._call(self._execute_rows, statement, rows)

    def close(self) -> None:
        if self._trial is not None:
            self._trial.close()
        self._journal.close()
        self._journal, self._trial = Journal(), None
        self._is_careful = self._has_failed = False
        self._targets.clear()
        super().close()

    def _write(
        self, table: TableName, rows: pa.RecordBatch, clause: str = "", key: Sequence[str] = ()
    ) -> None:
        target = self._target(table)
        check_values(rows, target)
        items = {
            field.name: union_item(field, target.field(field.name))
            or self.dialect.quote(field.name)
            for field in rows.schema
        }
        names = self.dialect.quote_all(rows.schema.names)
        source = f"({names}) SELECT {', '.join(items.values())} FROM {ROWS}"
        try:
            if self._is_careful:
                self._trial_of(table).check(rows, source, key)
            self._apply(f"INSERT INTO {self.dialect.table(table)} {source} {clause}", rows)
        except Rejected:
            if rows.num_rows == 1:
                self._check_columns(items, rows, target)
            raise

    def _apply(self, statement: str, rows: pa.RecordBatch) -> None:
        try:
            self._call(self._execute_rows, statement, rows)
        except RecordError:
            self._has_failed = True
            raise
        self._journal.add_rows(statement, rows)

    def _execute_rows(self, statement: str, rows: pa.RecordBatch) -> None:
        client = self._opened()
        client.register("penstock_rows", rows)
        try:
            client.execute(statement)
        finally:
            with suppress(Exception):
                client.unregister("penstock_rows")

    def _check_columns(
        self, items: Mapping[str, str], row: pa.RecordBatch, target: pa.Schema
    ) -> None:
        """Raises Rejected with the name of the column whose value DuckDB does not convert."""
        with closing(self.other_cursor()) as cursor:
            cursor.register("penstock_rows", row)
            for name, item in items.items():
                declared = declared_type(target.field(name))
                try:
                    cursor.execute(f"SELECT CAST({item} AS {declared}) FROM {ROWS}").fetchall()
                except Exception as error:
                    translated = self.translate_error(error)
                    if isinstance(translated, Rejected):
                        raise Rejected(
                            f'column "{name}": {translated.message}', code=translated.code
                        ) from error

    def _trial_of(self, table: TableName) -> Trial:
        if self._trial is None or self._trial.table != table:
            if self._trial is not None:
                self._trial.close()
            self._trial = Trial(self, table)
        return self._trial

    def _target(self, table: TableName) -> pa.Schema:
        if table not in self._targets:
            target = self.columns(table)
            assert target is not None
            self._targets[table] = target
        return self._targets[table]

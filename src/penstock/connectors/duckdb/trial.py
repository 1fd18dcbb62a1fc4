"""A trial of rows, beside the transaction that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from penstock.connectors.duckdb.connection import OF_TABLE, DuckdbConnection, identifiers
from penstock.core.errors import Permanent, Rejected
from penstock.sdk.database import TableName
from penstock.sdk.database.types import declared_type

_CHECKS = f"""
SELECT expression FROM duckdb_constraints() WHERE {OF_TABLE} AND constraint_type = 'CHECK'
"""


class Trial:
    """Rows in a temporary copy of a table, which is empty after each trial.

    The copy has the types, NOT NULL and CHECK of the table, and is written to by a cursor with
    transactions of its own. Keys are searched in the table, by a query of the transaction that
    writes, which reads its own rows. Foreign keys are not tried.
    """

    def __init__(self, connection: DuckdbConnection, table: TableName) -> None:
        self.table = table
        self._connection, self._dialect = connection, connection.dialect
        self._keys = connection.unique_keys(table)
        self._cursor = connection.other_cursor()
        self._copied: tuple[str, ...] | None = None
        self._free: pa.RecordBatch | None = None
        """Rows whose keys were not in the table. Their parts need no other search."""

    def check(self, rows: pa.RecordBatch, source: str, key: Sequence[str]) -> None:
        """Raises Rejected if the table rejects a row of `source`, the end of an INSERT of `rows`.

        Rows with the same values in `key` are replaced.
        """
        if self._free is None or not _is_part(rows, self._free):
            for names in self._keys:
                if set(names) <= {*rows.schema.names} and set(names) != set(key):
                    self._check_key(rows, names, key)
            self._free = rows
        self._copy(rows.schema.names)
        copy = f"temp.main.{self._dialect.quote(self.table.name)}"
        self._cursor.register("penstock_rows", rows)
        try:
            self._cursor.execute("BEGIN")
            self._cursor.execute(f"INSERT INTO {copy} {source}")
        except Exception as error:
            translated = self._connection.translate_error(error)
            raise error if translated is None else translated from error
        finally:
            self._cursor.execute("ROLLBACK")
            self._cursor.unregister("penstock_rows")

    def close(self) -> None:
        """Closes the cursor."""
        with suppress(Exception):
            self._cursor.close()

    def _check_key(
        self, rows: pa.RecordBatch, names: Sequence[str], replaced: Sequence[str]
    ) -> None:
        def equal(columns: Sequence[str]) -> str:
            quoted = map(self._dialect.quote, columns)
            return " AND ".join(f"t.{name} = r.{name}" for name in quoted)

        other = f" AND NOT ({equal(replaced)})" if replaced else ""
        quoted, table = self._dialect.quote_all(names), self._dialect.table(self.table)
        self._connection.client.register("penstock_rows", rows)
        found = self._connection.query(
            f"SELECT {quoted} FROM temp.penstock_rows AS r "
            f"WHERE EXISTS (SELECT 1 FROM {table} AS t WHERE {equal(names)}{other}) "
            f"UNION ALL (SELECT {quoted} FROM temp.penstock_rows "
            f"WHERE ({quoted}) IS NOT NULL GROUP BY ALL HAVING count(*) > 1) LIMIT 1"
        )
        self._connection.client.unregister("penstock_rows")
        if found:
            text = ", ".join(f"{n}: {value}" for n, value in zip(names, found[0], strict=True))
            raise Rejected(f'DuckDB rejects the row: duplicate key "{text}"', code="rejected")

    def _copy(self, written: Sequence[str]) -> None:
        """Creates the copy. Columns that are not written may be null in it."""
        if self._copied == (*written,):
            return
        target = self._connection.columns(self.table)
        assert target is not None
        definitions = [
            f"{self._dialect.quote(field.name)} {declared_type(field)}"
            + ("" if field.nullable or field.name not in written else " NOT NULL")
            for field in target
        ]
        checks = self._connection.query(_CHECKS, identifiers(self.table))
        definitions += [f"CHECK ({expression})" for (expression,) in checks]
        copy = f"temp.main.{self._dialect.quote(self.table.name)}"
        try:
            self._cursor.execute(f"CREATE OR REPLACE TEMP TABLE {copy} ({', '.join(definitions)})")
        except Exception as error:
            raise Permanent(f"cannot copy the columns of {self.table}: {error}") from error
        self._copied = (*written,)


def _is_part(rows: pa.RecordBatch, whole: pa.RecordBatch) -> bool:
    """Returns whether rows are a slice of others, which share their memory."""
    ours, theirs = rows.column(0), whole.column(0)
    start = ours.offset - theirs.offset
    return (
        _addresses(ours) == _addresses(theirs) and start >= 0 and start + len(ours) <= len(theirs)
    )


def _addresses(array: pa.Array) -> list[int | None]:
    return [None if buffer is None else buffer.address for buffer in array.buffers()]

"""The values of a dynamic table in the state directory of a pipeline, in a SQLite database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.connectors.sqlite.source import SqliteSource, SqliteSourceConfig
from penstock.connectors.sqlite.types import DIALECT
from penstock.sdk import Capability, Config, Context, LookupSource, Read
from penstock.sdk.database import DatabaseSink, DatabaseSinkConfig

_FILE, _TABLE = "values.db", "dynamic_table"


class StateTable(LookupSource[Config]):
    """Looks up values in the state directory, and then those that `other` has.

    Without the file there are no values.
    """

    capabilities = frozenset({Capability.LOOKUP_BY_KEY, Capability.ROWS})
    acknowledges = None

    def __init__(
        self, context: Context, values: pa.Schema, other: LookupSource[Any] | None = None
    ) -> None:
        super().__init__(Config(), context)
        self.columns, self.primary_key, self._other = values, tuple(values.names), other

    def open(self) -> tuple[SqliteSource, Any]:
        config = SqliteSourceConfig(path=str(_file(self.context)), table=_TABLE)
        source = SqliteSource(config)
        source.columns = self.columns
        return source, None if self._other is None else self._other.open()

    def lookup(
        self, client: tuple[SqliteSource, Any], keys: pa.RecordBatch, read: Read
    ) -> pa.RecordBatch:
        source, other = client
        assert self.columns is not None
        found = source.read_keys(keys, read) if _file(self.context).exists() else []
        if self._other is not None:
            self._other.columns = self.columns
            found = [*found, self._other.lookup(other, keys, read)]
        table = pa.Table.from_batches(found, self.columns)
        rows = table.group_by(self.columns.names).aggregate([]).combine_chunks()
        batches = rows.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], self.columns)

    def close_client(self, client: tuple[SqliteSource, Any]) -> None:
        source, other = client
        source.close()
        if self._other is not None:
            self._other.close_client(other)


class StateTableSink(DatabaseSink[DatabaseSinkConfig]):
    """Adds values to a dynamic table in the state directory."""

    dialect = DIALECT

    def __init__(self, context: Context) -> None:
        super().__init__(DatabaseSinkConfig(table=_TABLE), context)

    def connect(self) -> SqliteConnection:
        file = _file(self.context)
        file.parent.mkdir(parents=True, exist_ok=True)
        return SqliteConnection(str(file), "rwc")

    def check(self) -> None:
        """Does nothing: the state directory is checked by the run."""


def _file(context: Context) -> Path:
    assert context.state is not None
    return context.state / _FILE

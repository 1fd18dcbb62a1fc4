"""A sink that writes rows to a table in transactions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.sdk.capability import Capability
from penstock.sdk.database.config import DatabaseSinkConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.ledger import Ledger
from penstock.sdk.database.table_sink import TableSink
from penstock.sdk.sink import BatchId, Receipt, Writer

REMOVED = -1
"""The writer in the ledger that has removed the rows before a batch, with `mode: replace` or after
a truncation."""
_KEEPS_ROWS = (
    "Remove the rows or the rule that refer to the table, or set on_truncate: ignore to keep the "
    "rows."
)

T = TypeVar("T", bound=DatabaseSinkConfig)


def upserts_only(name: str) -> OptionError:
    """Returns the error of an option that has no meaning without `mode: upsert`."""
    return OptionError.of(
        name, message=f"{name} has no meaning without mode: upsert", code="unused-option",
        hint="Set mode: upsert and primary_key, or remove the option.",
    )  # fmt: skip


class DatabaseSink(TableSink[T], Generic[T]):
    """Base class of sinks of tables. Define `connect`.

    A writer writes its part of a batch in one transaction, which also records the batch in the
    ledger. A batch of one writer becomes visible as a whole.
    """

    capabilities = frozenset(
        {
            Capability.ROWS,
            Capability.ORDERED,
            Capability.EXACTLY_ONCE,
            Capability.UPSERT,
            Capability.DELETE,
            Capability.REPLACE,
            Capability.TRUNCATE,
        }
    )
    acknowledges = "its transaction is committed"

    @property
    def ledger(self) -> Ledger:
        """The ledger of the sink, beside the table."""
        return Ledger.beside(self.table, f"{self.context.owner}/{self.context.node}")

    @property
    def privileges(self) -> list[str]:
        """The privileges on the table that the mode needs."""
        by_mode = {"upsert": ["UPDATE", "DELETE"], "replace": ["DELETE"]}
        return ["INSERT", "SELECT", *by_mode.get(self.mode, [])]

    def prepare_ledger(self, connection: Connection) -> None:
        self.ledger.create(connection)

    def writer(
        self, client: Connection, batch: BatchId, partition: int, schema: pa.Schema
    ) -> Writer:
        client.rollback()
        is_new = self.ledger.claim(client, batch, partition)
        if is_new and self._removes_rows(batch):
            self._remove_rows(client, batch)
        return self.table_writer(client, partition, schema, is_new=is_new)

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if self._removes_rows(batch) and not receipts:
            with closing(self.connect()) as connection:
                if self._is_prepared(connection):
                    self._remove_rows(connection, batch)
                connection.commit()

    def last_batch(self, query: str) -> BatchId | None:
        with closing(self.connect()) as connection:
            return self.ledger.last(connection, query) if self._is_prepared(connection) else None

    def _is_prepared(self, connection: Connection) -> bool:
        return connection.columns(self.ledger.table) is not None

    def _removes_rows(self, batch: BatchId) -> bool:
        return self.mode == "replace" or batch.truncates

    def _remove_rows(self, connection: Connection, batch: BatchId) -> None:
        """Removes the rows before a batch, once."""
        if self.ledger.claim(connection, batch, REMOVED):
            with self.without_rows("remove the rows of", _KEEPS_ROWS if batch.truncates else None):
                connection.execute(f"DELETE FROM {connection.dialect.table(self.table)}")

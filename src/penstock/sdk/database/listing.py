"""Sources of systems with tables, which `penstock discover` lists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import pyarrow as pa

from penstock.sdk.database.names import TableName


class TableListing(Protocol):
    """A connection to a system with tables. Its methods raise Transient or Permanent."""

    def tables(self) -> Sequence[TableName]:
        """Returns the names of the tables."""

    def columns(self, table: TableName) -> pa.Schema | None:
        """Returns the columns of a table; None if it does not exist."""

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        """Returns the primary key of a table, or no columns."""

    def rollback(self) -> None:
        """Ends a query, if there is one."""

    def close(self) -> None:
        """Closes the connection."""


class ListedSource(ABC):
    """A source that reads a table of a system, and can list the others."""

    example_table: ClassVar[str] = "penstock_discovery"
    """A name that is valid as the option `table`."""

    @abstractmethod
    def connect(self) -> TableListing:
        """Returns a new connection that only reads. Raises Transient or Permanent."""

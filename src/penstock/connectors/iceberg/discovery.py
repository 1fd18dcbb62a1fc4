"""The tables of a catalog, for `penstock discover`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.connectors.iceberg.client import TableAccess
from penstock.connectors.iceberg.errors import convert_errors
from penstock.connectors.iceberg.types import row_schema
from penstock.sdk.database import TableName


@dataclass(frozen=True)
class CatalogListing:
    """The tables of a catalog."""

    access: TableAccess

    def tables(self) -> Sequence[TableName]:
        """Returns the names of the tables, with their namespaces."""
        if self.access.lacks_catalog:
            return []
        with convert_errors("list", "the tables of the catalog"):
            return sorted(map(TableName, self._names(())), key=str)

    def columns(self, table: TableName) -> pa.Schema | None:
        """Returns the columns of a table. Raises PlanError for an unsupported type."""
        found = self._of(table).open()
        return None if found is None else row_schema(found.schema().fields)

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        """Returns the identifier fields of a table."""
        found = self._of(table).open()
        if found is None:
            return ()
        schema = found.schema()
        return tuple(schema.find_field(number).name for number in schema.identifier_field_ids)

    def rollback(self) -> None:
        """Does nothing: no query stays open."""

    def close(self) -> None:
        """Closes the connection to the catalog."""
        self.access.close()

    def _of(self, table: TableName) -> TableAccess:
        return replace(self.access, name=str(table))

    def _names(self, namespace: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        catalog = self.access.catalog
        if namespace:
            yield from catalog.list_tables(namespace)
        for inner in catalog.list_namespaces(namespace):
            if len(inner) > len(namespace):
                yield from self._names(tuple(inner))

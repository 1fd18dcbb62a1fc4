"""Tables of a database, as its driver describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from penstock.connectors.jdbc.reading import columns_of
from penstock.connectors.jdbc.types import JdbcColumn
from penstock.sdk.columns.names import fold
from penstock.sdk.database import TableName

_SYSTEM_SCHEMAS = frozenset(
    {"information_schema", "pg_catalog", "sys", "system", "mysql", "performance_schema"}
)
_OTHER_KINDS = ("SYSTEM", "INDEX", "SEQUENCE", "TYPE", "PARTITION")


class Metadata:
    """The tables of a connection, and their columns and keys.

    A name of a table is spelled as the database spells it, if only the case differs.
    """

    def __init__(self, client: Any) -> None:
        self._client, self._data = client, client.getMetaData()
        self._known: dict[TableName, TableName] = {}
        self._catalog = _text(client.getCatalog())
        schema = _text(client.getSchema())
        # A user of PostgreSQL without rights on a schema has none. Not all drivers have the method.
        self._uses_catalogs = not (schema or self._data.supportsSchemasInTableDefinitions())
        self._current = self._catalog if self._uses_catalogs else schema

    def spelled(self, table: TableName) -> TableName:
        """Returns the name of a table as the database spells it; a missing table keeps its name."""
        if table not in self._known:
            found = self._named(table)
            own = [each for each in found if each.parts[-len(table.parts) :] == table.parts]
            names = own or found
            if len(names) != 1:
                return table
            self._known[table] = names[0]
        return self._known[table]

    def exists(self, table: TableName) -> bool:
        """Returns whether a table or a view exists."""
        spelled = self.spelled(table)
        return any(name == spelled for name, *_ in self._tables(self._exactly(spelled.name)))

    def tables(self) -> list[TableName]:
        """Returns the tables and views, without the schema that is used by default."""
        found = {
            name
            for name, schema, kind in self._tables("%")
            if not any(each in kind for each in _OTHER_KINDS)
            and schema.lower() not in _SYSTEM_SCHEMAS
        }
        return sorted(found, key=lambda name: (len(name.parts), name.parts))

    def columns(self, table: TableName, select: str) -> list[JdbcColumn]:
        """Returns the columns of a table. `select` is a query of all its columns."""
        required = self._required(self.spelled(table))
        with (
            closing(self._client.createStatement()) as statement,
            closing(statement.executeQuery(select)) as result,
        ):
            found = columns_of(result.getMetaData())
        return [
            JdbcColumn(
                each.name, each.code, each.type_name, each.precision, each.scale, each.is_signed,
                each.name not in required,
            )
            for each in found
        ]  # fmt: skip

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        """Returns the columns of the primary key of a table in their order."""
        result = self._data.getPrimaryKeys(*self._place(self.spelled(table)))
        found = {
            row["KEY_SEQ"]: row["COLUMN_NAME"] for row in _rows(result, "KEY_SEQ", "COLUMN_NAME")
        }
        return tuple(found[number] for number in sorted(found, key=int))

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        """Returns the columns of the primary key and of each unique index."""
        result = self._data.getIndexInfo(*self._place(self.spelled(table)), True, True)
        indexes: dict[str, list[str]] = {}
        for row in _rows(result, "INDEX_NAME", "COLUMN_NAME"):
            if row["INDEX_NAME"]:
                indexes.setdefault(row["INDEX_NAME"], []).append(row["COLUMN_NAME"])
        keys = [tuple(names) for names in indexes.values()]
        primary = self.primary_key(table)
        return [primary, *keys] if primary else keys

    def type_names(self, table: TableName) -> dict[str, str]:
        """Returns the names of the types of the columns, which results may not have."""
        rows = self._described(self.spelled(table), "TYPE_NAME")
        return {row["COLUMN_NAME"]: row["TYPE_NAME"].upper() for row in rows}

    def _required(self, table: TableName) -> set[str]:
        """Returns the columns that need a value in each new row."""
        return {
            row["COLUMN_NAME"]
            for row in self._described(table, "IS_NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT")
            if row["IS_NULLABLE"] == "NO" and not row["COLUMN_DEF"]
            and row["IS_AUTOINCREMENT"] != "YES"
        }  # fmt: skip

    def _described(self, table: TableName, *fields: str) -> list[Any]:
        """Returns fields of the columns of a table, with their names."""
        catalog, schema, name = self._place(table)
        schema_pattern = None if schema is None else self._exactly(schema)
        result = self._data.getColumns(catalog, schema_pattern, self._exactly(name), None)
        rows = _rows(result, "TABLE_NAME", "COLUMN_NAME", *fields)
        return [row for row in rows if row["TABLE_NAME"] == name]

    def _named(self, table: TableName) -> list[TableName]:
        """Returns the tables with a name as it is given, in upper or in lower case."""
        spellings = dict.fromkeys((table.name, table.name.upper(), table.name.lower()))
        found = [
            name
            for spelling in spellings
            for name, schema, _ in self._tables(self._exactly(spelling))
            if self._is_named(name, schema, table)
        ]
        return [*dict.fromkeys(found)]

    def _tables(self, pattern: str) -> Iterator[tuple[TableName, str, str]]:
        """Yields the tables whose names have a pattern, with their schemas and kinds."""
        catalog = None if self._uses_catalogs else self._catalog or None
        result = self._data.getTables(catalog, None, pattern, None)
        for row in _rows(result, "TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"):
            schema = row["TABLE_CAT"] if self._uses_catalogs else row["TABLE_SCHEM"]
            own = None if schema == self._current else schema or None
            yield TableName.of(own, row["TABLE_NAME"]), schema, row["TABLE_TYPE"].upper()

    @staticmethod
    def _is_named(name: TableName, schema: str, table: TableName) -> bool:
        """Returns whether a table of a schema has a name, which may have its schema."""
        qualified = (*([] if len(table.parts) == 1 else [schema]), name.name)
        own = name.parts if len(table.parts) == 1 else qualified
        return [*map(fold, own)] == [*map(fold, table.parts[-2:])]

    def _place(self, table: TableName) -> tuple[str | None, str | None, str]:
        """Returns the catalog, the schema and the name of a table."""
        qualifier = table.parts[-2] if len(table.parts) > 1 else self._current or None
        if self._uses_catalogs:
            return qualifier, None, table.name
        return self._catalog or None, qualifier, table.name

    def _exactly(self, name: str) -> str:
        """Returns the pattern of a name.

        It also matches names with another character in place of an escape character, which drivers
        read differently.
        """
        escape = _text(self._data.getSearchStringEscape())
        if not escape:
            return name
        parts = [
            part.replace("_", f"{escape}_").replace("%", f"{escape}%")
            for part in name.split(escape)
        ]
        return "_".join(parts)


def _rows(result: Any, *names: str) -> Iterator[Mapping[str, str]]:
    """Yields the rows of a result of the driver, with the texts of some columns."""
    with closing(result):
        while result.next():
            yield {name: _text(result.getString(name)) for name in names}


def _text(value: Any) -> str:
    return "" if value is None else str(value)

"""SQL of a database: quotation, parameters, and the statements of sinks and sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from penstock.sdk.database.names import TableName, check_no_nul, invalid_name
from penstock.sdk.database.types import TypeMap


@dataclass(frozen=True)
class Dialect:
    """The SQL of a system.

    `parameter` stands for a value in a statement. Values are passed as parameters and names are
    quoted, so no text of a row or a pipeline file is read as SQL. `upsert_clause` is the form of a
    statement that inserts or replaces.
    """

    types: TypeMap
    quotation: str = '"'
    parameter: str = "?"
    upsert_clause: Literal["on_conflict", "on_duplicate_key"] = "on_conflict"
    compares_rows: bool = True
    """Whether rows can be compared, as `(a, b) > (1, 2)`."""
    indexes_rows: bool = True
    """Whether an index serves a comparison of rows."""
    limit: str = "LIMIT {count}"
    """The clause after ORDER BY that limits the number of rows."""
    table_options: str = ""
    """The text after the columns of a new table."""
    max_name: int | None = None
    """The greatest length of a name, in bytes or in characters."""
    name_unit: Literal["bytes", "characters"] = "characters"
    folds_names: bool = True
    """Whether tables may be the same whose quoted names differ by case."""

    @property
    def system(self) -> str:
        """The name of the system in messages."""
        return self.types.system

    def quote(self, name: str) -> str:
        """Returns a quoted name. Raises PlanError for a name that the system does not have."""
        self.check_name(name)
        return f"{self.quotation}{name.replace(self.quotation, self.quotation * 2)}{self.quotation}"

    def check_name(self, name: str) -> None:
        """Raises PlanError for a name that the system rejects, or reads as another one."""
        check_no_nul(name, self.system)
        length = len(name.encode() if self.name_unit == "bytes" else name)
        if self.max_name is not None and length > self.max_name:
            raise invalid_name(
                name, f"a name of {self.system} has {self.max_name} {self.name_unit} at most"
            )

    def quote_all(self, names: Iterable[str]) -> str:
        """Returns a list of quoted names."""
        return ", ".join(map(self.quote, names))

    def table(self, table: TableName) -> str:
        """Returns the quoted name of a table."""
        return ".".join(map(self.quote, table.parts))

    def column(self, field: pa.Field) -> str:
        """Returns the definition of a column. Raises PlanError for an unsupported type."""
        return f"{self.quote(field.name)} {self.types.column_type(field)}"

    def key_column(self, field: pa.Field) -> str:
        """Returns the definition of a column of the primary key."""
        return f"{self.column(field)} NOT NULL"

    def create_table(self, table: TableName, columns: pa.Schema, key: Sequence[str] = ()) -> str:
        """Returns the statement that creates a table unless it exists."""
        definitions = [
            self.key_column(field) if field.name in key else self.column(field) for field in columns
        ]
        if key:
            definitions.append(f"PRIMARY KEY ({self.quote_all(key)})")
        content = f"({', '.join(definitions)}){self.table_options}"
        return f"CREATE TABLE IF NOT EXISTS {self.table(table)} {content}"

    def add_column(self, table: TableName, field: pa.Field) -> str:
        """Returns the statement that adds a column."""
        return f"ALTER TABLE {self.table(table)} ADD COLUMN {self.column(field)}"

    def insert(self, table: TableName, names: Sequence[str]) -> str:
        """Returns the statement that inserts a row."""
        values = ", ".join([self.parameter] * len(names))
        return f"INSERT INTO {self.table(table)} ({self.quote_all(names)}) VALUES ({values})"

    def upsert(self, table: TableName, names: Sequence[str], key: Sequence[str]) -> str:
        """Returns the statement that inserts a row, or replaces the row with its key."""
        return f"{self.insert(table, names)} {self.conflict_clause(names, key)}"

    def conflict_clause(self, names: Sequence[str], key: Sequence[str]) -> str:
        """Returns the clause of an INSERT that replaces the row with the key of a new one."""
        others = [name for name in names if name not in key]
        if self.upsert_clause == "on_duplicate_key":
            values = ", ".join(
                f"{self.quote(n)} = VALUES({self.quote(n)})" for n in others or list(key)
            )
            return f"ON DUPLICATE KEY UPDATE {values}"
        values = ", ".join(f"{self.quote(n)} = excluded.{self.quote(n)}" for n in others)
        action = f"DO UPDATE SET {values}" if others else "DO NOTHING"
        return f"ON CONFLICT ({self.quote_all(key)}) {action}"

    def keep_clause(self, key: Sequence[str]) -> str:
        """Returns the clause of an INSERT that keeps the row with the key of a new one."""
        if self.upsert_clause == "on_duplicate_key":
            name = self.quote(key[0])
            return f"ON DUPLICATE KEY UPDATE {name} = {name}"
        return f"ON CONFLICT ({self.quote_all(key)}) DO NOTHING"

    def delete(self, table: TableName, key: Sequence[str]) -> str:
        """Returns the statement that deletes the row with a key."""
        return f"DELETE FROM {self.table(table)} WHERE {self.equal(key)}"

    def limited(self, query: str, count: int) -> str:
        """Returns a SELECT statement that returns `count` rows at most."""
        return f"{query} {self.limit.format(count=count)}"

    def from_query(self, query: str, alias: str) -> str:
        """Returns a query as a FROM item. Not all systems accept AS here."""
        return f"({query}) {self.quote(alias)}"

    def beyond(
        self, names: Sequence[str], operator: Literal[">", "<="], values: Sequence[Any]
    ) -> tuple[str, tuple[Any, ...]]:
        """Returns the condition that columns are after a row or up to it, and its parameters.

        Columns are compared in their order: the next one counts if those before it are equal.
        """
        mark, first = self.parameter, self.quote(names[0])
        if len(values) == 1:
            return f"{first} {operator} {mark}", tuple(values)
        if self.compares_rows:
            marks = ", ".join([mark] * len(values))
            condition, parameters = f"({self.quote_all(names)}) {operator} ({marks})", [*values]
        else:
            condition, parameters = self._column_by_column(names, operator, values)
        if not (self.compares_rows and self.indexes_rows):
            condition = f"{condition} AND {first} {operator[0]}= {mark}"
            parameters.append(values[0])
        return condition, tuple(parameters)

    def _column_by_column(
        self, names: Sequence[str], operator: Literal[">", "<="], values: Sequence[Any]
    ) -> tuple[str, list[Any]]:
        """Returns the comparison of rows as a comparison of each column."""
        cases: list[str] = []
        parameters: list[Any] = []
        for index, name in enumerate(names):
            is_last = index == len(names) - 1
            sign = operator if is_last else operator[0]
            compared = f"{self.quote(name)} {sign} {self.parameter}"
            equal = [f"{self.quote(each)} = {self.parameter}" for each in names[:index]]
            cases.append(f"({' AND '.join([*equal, compared])})")
            parameters += values[: index + 1]
        return f"({' OR '.join(cases)})", parameters

    def any_of(self, columns: Sequence[str], count: int) -> str:
        """Returns the condition that expressions have one of `count` keys of parameters."""
        if len(columns) == 1:
            return f"{columns[0]} IN ({', '.join([self.parameter] * count)})"
        key = " AND ".join(f"{column} = {self.parameter}" for column in columns)
        return " OR ".join([f"({key})"] * count)

    def equal(self, names: Sequence[str]) -> str:
        """Returns the condition that columns have the values of parameters."""
        return " AND ".join(f"{self.quote(name)} = {self.parameter}" for name in names)

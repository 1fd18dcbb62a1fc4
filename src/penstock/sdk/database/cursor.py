"""Cursors: reading a table in the order of columns, from offset to offset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)
from typing import Any
from uuid import UUID

from penstock.core.errors import Permanent
from penstock.sdk.database.dialect import Dialect

Values = tuple[Any, ...]
_AS_TEXTS = (IPv4Address, IPv6Address, IPv4Interface, IPv6Interface, IPv4Network, IPv6Network)
"""Types whose values systems compare with texts."""


@dataclass(frozen=True)
class OtherTime:
    """A date or a time that Python does not have, such as an infinite one.

    `text` and `type` are those of the database.
    """

    type: str
    text: str

    def __le__(self, other: object) -> bool:
        return self._is_before_others

    def __ge__(self, other: object) -> bool:
        return not self._is_before_others

    @property
    def _is_before_others(self) -> bool:
        return self.text.startswith("-") or "(BC)" in self.text


@dataclass(frozen=True)
class Cursor:
    """The order in which rows of a table or a query are read.

    `columns` identify a row, or rows that are written together. An offset has the values of the
    last row before it. `relation` is the FROM item in SQL.
    """

    relation: str
    columns: tuple[str, ...]
    dialect: Dialect
    condition: str | None = None
    """A condition of rows that may be read now."""
    nullable: tuple[str, ...] = ()
    """The columns that may have nulls, which have no place in the order."""

    def last(self, start: Values | None) -> tuple[str, Values]:
        """Returns the query of the last row after a position, and its parameters."""
        return self._select(self._names, start, None, "DESC", 1)

    def limited(self, start: Values | None, end: Values, count: int) -> tuple[str, Values]:
        """Returns the query of the last one of the first `count` rows of a range."""
        inner, parameters = self._select(self._names, start, end, "ASC", count)
        rows = self.dialect.from_query(inner, "penstock_rows")
        query = f"SELECT {self._names} FROM {rows} {self._order('DESC')}"
        return self.dialect.limited(query, 1), parameters

    def rows(self, items: str, start: Values | None, end: Values) -> tuple[str, Values]:
        """Returns the query of a SELECT list of the rows after `start`, up to `end`."""
        return self._select(items, start, end, "ASC", None)

    def first(self, items: str, start: Values | None, count: int) -> tuple[str, Values]:
        """Returns the query of a SELECT list of the first `count` rows after `start`."""
        return self._select(items, start, None, "ASC", count)

    def count(self, start: Values | None, end: Values) -> tuple[str, Values]:
        """Returns the query of the number of rows of a range."""
        where, parameters = self._where(start, end)
        return f"SELECT count(*) FROM {self.relation}{where}", parameters

    def extent(self, column: str, start: Values | None, end: Values | None) -> tuple[str, Values]:
        """Returns the query of the least and the greatest value of a column in a range."""
        where, parameters = self._where(start, end)
        quoted = self.dialect.quote(column)
        return f"SELECT min({quoted}), max({quoted}) FROM {self.relation}{where}", parameters

    def nulls(self) -> str | None:
        """Returns the query of a row that has no place in the order; None if there is none."""
        if not self.nullable:
            return None
        nulls = " OR ".join(f"{self.dialect.quote(name)} IS NULL" for name in self.nullable)
        return self.dialect.limited(f"SELECT 1 FROM {self.relation} WHERE {nulls}", 1)

    @property
    def _names(self) -> str:
        return self.dialect.quote_all(self.columns)

    def _order(self, direction: str) -> str:
        order = ", ".join(f"{self.dialect.quote(name)} {direction}" for name in self.columns)
        return f"ORDER BY {order}"

    def _select(
        self, names: str, start: Values | None, end: Values | None, direction: str,
        count: int | None,
    ) -> tuple[str, Values]:  # fmt: skip
        where, parameters = self._where(start, end)
        query = f"SELECT {names} FROM {self.relation}{where} {self._order(direction)}"
        return query if count is None else self.dialect.limited(query, count), parameters

    def _where(self, start: Values | None, end: Values | None) -> tuple[str, Values]:
        conditions: list[str] = []
        parameters: list[Any] = []
        if start is not None:
            condition, compared = self.dialect.beyond(self.columns, ">", start)
            conditions.append(condition)
            parameters += compared
        if end is not None:
            condition, compared = self.dialect.beyond(self.columns, "<=", end)
            conditions.append(condition)
            parameters += compared
        if self.condition is not None and end is None:
            conditions.append(self.condition)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return where, tuple(parameters)


def encode(values: Values | None) -> list[Any] | None:
    """Returns values of a cursor as JSON."""
    return None if values is None else [_encoded(value) for value in values]


def decode(values: Sequence[Any] | None) -> Values | None:
    """Returns values of `encode`."""
    return None if values is None else tuple(map(_decoded, values))


def _encoded(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, UUID):
        return {"uuid": str(value)}
    if isinstance(value, OtherTime):
        return {"time": [value.type, value.text]}
    if isinstance(value, bool | int | float):
        return value
    kind = f"values of the type {type(value).__name__}"
    if isinstance(value, str):
        if value.isascii() or value == value.encode(errors="replace").decode():
            return value
        kind = "texts that are not UTF-8"
    if isinstance(value, _AS_TEXTS):
        return str(value)
    raise Permanent(
        f"cannot read in the order of a column with {kind}",
        code="cursor-type",
        hint="Set cursor_columns to columns of numbers, text or times.",
    )


def _decoded(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    ((kind, content),) = value.items()
    return _DECODERS[kind](content)


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "uuid": UUID,
    "time": lambda parts: OtherTime(*parts),
}

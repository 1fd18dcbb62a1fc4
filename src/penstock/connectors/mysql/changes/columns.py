"""Types of columns in the binary log, which has less than the declared types of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.changes.addresses import TEXTS
from penstock.connectors.mysql.changes.charsets import BINARY
from penstock.connectors.mysql.types import TYPES

_INTEGERS = {1: "tinyint", 2: "smallint", 3: "int", 8: "bigint", 9: "mediumint"}
_OTHERS = {
    4: "float", 5: "double", 7: "timestamp", 10: "date", 11: "time", 12: "datetime", 13: "year",
    17: "timestamp", 18: "datetime", 19: "time", 245: "json", 255: "geometry",
}  # fmt: skip
_FIXED = 254
_STRINGS = frozenset({15, 252, 253, _FIXED})


def declared_in_log(column: Any, charset: str | None, declared: str) -> str:
    """Returns the type of a column of a TableMapEvent as it is declared.

    The log does not have members, lengths, and the 1 of TINYINT(1). It has UUID and INET as BINARY:
    they are those of the type that is `declared` now.
    """
    type_ = column.type
    if is_address(column, charset, declared):
        return declared
    if type_ in _INTEGERS:
        return f"{_INTEGERS[type_]}{' unsigned' if column.unsigned else ''}"
    if type_ in _OTHERS:
        return _OTHERS[type_]
    if type_ == 246:
        return f"decimal({column.precision},{column.decimals})"
    if type_ == 16:
        return f"bit({column.bits})"
    return "longblob" if type_ in _STRINGS and charset == BINARY else "longtext"


def is_address(column: Any, charset: str | None, declared: str) -> bool:
    """Returns whether a column has the bytes of a UUID or an address."""
    return column.type == _FIXED and charset == BINARY and declared in TEXTS


def columns_in_log(declared: Iterable[tuple[str, str]], known: Iterable[pa.Schema]) -> pa.Schema:
    """Returns the columns of rows in the log, by their names and types of `declared_in_log`.

    A type is that of the first of the `known` columns which the log does not contradict.
    """
    fields = []
    for name, type_ in declared:
        found = TYPES.field(name, type_)
        assert found is not None
        others = (columns.field(name) for columns in known if name in columns.names)
        fields.append(next((each for each in others if _may_be(found, each)), found))
    return pa.schema(fields)


def _may_be(found: pa.Field, known: pa.Field) -> bool:
    is_flag = pa.types.is_int8(found.type) and pa.types.is_boolean(known.type)
    return bool(is_flag or found.type == known.type)

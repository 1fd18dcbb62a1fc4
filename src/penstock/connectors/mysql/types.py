"""The type map and the SQL of MySQL and MariaDB."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from penstock.sdk.database import Dialect, TypeMap
from penstock.sdk.database.names import invalid_name
from penstock.sdk.database.types import Parse, always, kind_of

_MAX_PRECISION = 38
_MAX_NAME = 64
_KEY_TYPES = {"string": "VARCHAR(255)", "binary": "VARBINARY(255)"}
"""Types of key columns, of which MySQL needs the length."""


def _integer(signed: pa.DataType, unsigned: pa.DataType) -> Parse:
    return lambda match: unsigned if match["unsigned"] else signed


def _decimal(match: re.Match[str]) -> pa.DataType:
    """Returns DECIMAL; STRING beyond 38 digits."""
    precision, scale = int(match[1]), int(match[2])
    return pa.decimal128(precision, scale) if precision <= _MAX_PRECISION else pa.string()


_NUMBER = r"(\(\d+\))?(?P<unsigned> unsigned)?( zerofill)?"
TYPES = TypeMap(
    system="MySQL",
    declared={
        "boolean": "TINYINT(1)",
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "decimal": "DECIMAL({precision},{scale})",
        "string": "LONGTEXT",
        "binary": "LONGBLOB",
        "date": "DATE",
        "timestamp": "DATETIME(6)",
        "timestamp_ntz": "DATETIME(6)",
        "list": "JSON",
        "nested_list": "JSON",
        "map": "JSON",
        "struct": "JSON",
        "json": "JSON",
    },
    read=[
        (r"tinyint\(1\)|bit\(1\)", always(pa.bool_())),
        (rf"tinyint{_NUMBER}", _integer(pa.int8(), pa.int16())),
        (rf"smallint{_NUMBER}", _integer(pa.int16(), pa.int32())),
        (rf"mediumint{_NUMBER}", _integer(pa.int32(), pa.int32())),
        (rf"int{_NUMBER}", _integer(pa.int32(), pa.int64())),
        (rf"bigint{_NUMBER}", _integer(pa.int64(), pa.decimal128(20, 0))),
        (r"year(\(\d\))?", always(pa.int16())),
        (r"float.*", always(pa.float32())),
        (r"double.*", always(pa.float64())),
        (r"decimal\((\d+),(\d+)\).*", _decimal),
        (r"date", always(pa.date32())),
        (r"datetime(\(\d\))?", always(pa.timestamp("us"))),
        (r"timestamp(\(\d\))?", always(pa.timestamp("us", tz="UTC"))),
        (r"bit\(\d+\)|(var)?binary\(\d+\)|.*blob", always(pa.binary())),
        (r"geom.*|(multi)?(point|linestring|polygon)|vector.*", always(pa.binary())),
        (r".*", always(pa.string())),
    ],
    json=r"json",
)


@dataclass(frozen=True)
class MysqlDialect(Dialect):
    """The SQL of MySQL and MariaDB."""

    def check_name(self, name: str) -> None:
        super().check_name(name)
        ends_with_space = name.endswith((" ", "\t", "\n", "\v", "\f", "\r"))
        if len(name) > _MAX_NAME or ends_with_space or any(ord(char) > 0xFFFF for char in name):
            raise invalid_name(
                name,
                f"expected a name of {_MAX_NAME} characters at most, without a space at its end "
                "and characters beyond U+FFFF",
            )

    def key_column(self, field: pa.Field) -> str:
        kind = kind_of(field)
        if kind in _KEY_TYPES:
            return f"{self.quote(field.name)} {_KEY_TYPES[kind]} NOT NULL"
        return super().key_column(field)


DIALECT = MysqlDialect(
    TYPES,
    quotation="`",
    parameter="\0",
    upsert_clause="on_duplicate_key",
    indexes_rows=False,
    # Collations without padding. MySQL reads the first comment, and MariaDB the second one.
    table_options=" ENGINE=InnoDB CHARACTER SET utf8mb4 "
    "/*!80017 COLLATE utf8mb4_0900_bin */ /*M! COLLATE utf8mb4_nopad_bin */",
)

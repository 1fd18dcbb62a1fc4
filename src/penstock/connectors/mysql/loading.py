"""LOAD DATA LOCAL: rows as the lines of a file that the client sends without having one.

Source: https://dev.mysql.com/doc/refman/8.4/en/load-data.html
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.mysql.literals import plain_texts
from penstock.sdk.database.types import declared_type

MIN_ROWS = 1000
"""The least number of rows. An INSERT of fewer rows is as fast."""
NOT_ALLOWED = frozenset({1148, 3948, 4166})
"""Errors of servers and proxies that do not allow the statement."""
_TYPES = frozenset(
    {
        "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double",
        "varchar", "tinytext", "text", "mediumtext", "longtext", "date", "datetime", "timestamp",
    }
)  # fmt: skip
"""Types of columns that convert a field of a line as they convert a literal."""
_FILE = "rows of penstock"
_PACKET_BYTES = 2**16
_NULL = "\\N"
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\0", "\\0"))


def is_loadable(rows: pa.RecordBatch, target: pa.Schema) -> bool:
    """Returns whether rows are worth a LOAD DATA, and their columns of `target` permit it."""
    declared = (declared_type(target.field(name)) for name in rows.schema.names)
    return rows.num_rows >= MIN_ROWS and all(
        each.partition("(")[0].partition(" ")[0] in _TYPES for each in declared
    )


def statement(table: str, names: str) -> str:
    """Returns the statement for a quoted table and quoted columns."""
    return f"LOAD DATA LOCAL INFILE '{_FILE}' INTO TABLE {table} CHARACTER SET utf8mb4 ({names})"


def lines(rows: pa.RecordBatch) -> memoryview:
    """Returns rows as lines, in the default format of LOAD DATA."""
    columns = [
        _field(column, field) for column, field in zip(rows.columns, rows.schema, strict=True)
    ]
    joined = pc.binary_join_element_wise(
        *columns, "\t", null_handling="replace", null_replacement=_NULL
    )
    ended = pc.binary_join_element_wise(joined, "\n", "")
    offsets = pa.Array.from_buffers(
        pa.int32(), len(ended) + 1, [None, ended.buffers()[1]], offset=ended.offset
    )
    return memoryview(ended.buffers()[2])[offsets[0].as_py() : offsets[-1].as_py()]


def load(client: Any, sql: str, data: memoryview) -> tuple[int, int]:
    """Executes the statement with the lines of its file. Returns the numbers of rows and warnings.

    No other file is sent, also if the server requests one: the client of PyMySQL does not allow it.
    """
    from pymysql.constants import COMMAND
    from pymysql.protocol import LoadLocalPacketWrapper, OKPacketWrapper

    client._execute_command(COMMAND.COM_QUERY, sql.encode())
    requested = LoadLocalPacketWrapper(client._read_packet())
    if requested.filename == _FILE.encode():
        for start in range(0, len(data), _PACKET_BYTES):
            client.write_packet(bytes(data[start : start + _PACKET_BYTES]))
    client.write_packet(b"")
    result = OKPacketWrapper(client._read_packet())
    return result.affected_rows, result.warning_count


def _field(column: pa.Array, field: pa.Field) -> pa.StringArray:
    texts = plain_texts(column, field)
    if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
        for char, escape in _ESCAPES:
            texts = pc.replace_substring(texts, char, escape)
    return texts

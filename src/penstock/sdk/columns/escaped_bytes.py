"""Bytes that are not UTF-8 in the JSON of rows: escapes of lone surrogates, `\\udcff` for 0xff.

JSON readers reject such an escape. The bytes are therefore hidden behind characters of the end of
Unicode while the text is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from penstock.sdk.columns.conform import rebuild

_ESCAPE = re.compile(rb"\\(?:u(dc[89a-f][0-9a-f])|.)")
_FIRST = 0x10FF00
_HIDDEN = re.compile(b"\xf4\x8f(?:\xbe[\x80-\xbf]|\xbf[\x80-\xbf])")


def hide_bytes(payloads: Sequence[bytes | None]) -> list[bytes | None]:
    """Returns payloads of `row_payload` with characters in place of bytes that are not UTF-8.

    If any payload contains these characters, all payloads are returned unchanged.
    """
    if any(payload is not None and _HIDDEN.search(payload) for payload in payloads):
        return list(payloads)
    return [payload and _ESCAPE.sub(_hidden, payload) for payload in payloads]


def _hidden(escape: re.Match[bytes]) -> bytes:
    if escape[1] is None:
        return escape[0]
    return chr(_FIRST + (int(escape[1], 16) & 0xFF)).encode()


def restore_bytes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows of payloads of `hide_bytes` with their bytes."""
    columns = [rebuild(column, column.type, _restored) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _restored(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_string(type_):
        return values
    content = [
        None if text is None else _HIDDEN.sub(_byte, text)
        for text in values.cast(pa.binary()).to_pylist()
    ]
    return pa.array(content, pa.binary()).view(type_)


def _byte(hidden: re.Match[bytes]) -> bytes:
    return bytes([ord(hidden[0].decode()) - _FIRST])

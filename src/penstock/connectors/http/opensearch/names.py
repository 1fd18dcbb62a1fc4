"""Names of indexes and IDs of documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.columns.template import Template, as_text

Parts = Sequence[tuple[str, str | None]]
"""Literal texts, each with the column that follows."""
_MAX_INDEX_BYTES = 255
_INDEX = re.compile(r'[^-_+A-Z\\/*?"<>| ,#:\x00-\x1f][^A-Z\\/*?"<>| ,#:\x00-\x1f]*')


def index_error(name: str | None) -> str | None:
    """Returns the error of the name of an index that is written to; None for a valid name."""
    if not name:
        return "the name of the index is null or empty"
    too_long = len(name.encode()) > _MAX_INDEX_BYTES
    if not _INDEX.fullmatch(name) or name in (".", "..") or too_long:
        return (
            f"{name!r} cannot be the name of an index: expected lower case, without spaces and any "
            'of \\/*?"<>|,#: and not with -, _ or + at the start'
        )
    return None


def check_key(key: Template) -> str | None:
    """Returns the error of a template in which the values of two columns would run together."""
    columns = [text for text, column in key.parts if column is not None]
    if not all(columns[1:]):
        return 'expected a text between two columns, as in "{country}-{number}"'
    return None


def key_parts(columns: Sequence[str]) -> Parts:
    """Returns the parts of the IDs of rows with a primary key."""
    return [("" if index == 0 else ":", name) for index, name in enumerate(columns)]


def render_ids(parts: Parts, rows: pa.RecordBatch) -> list[str | None]:
    """Returns the ID of each row; None if one of its columns is null.

    Different values have different IDs: the characters of the texts between columns are
    percent-encoded in values, and so is the percent sign.
    """
    before = [text for text, column in parts if column is not None]
    escaped = [*dict.fromkeys("%" + "".join(before[1:]))] if len(before) > 1 else []
    texts: list[Any] = []
    for text, column in parts:
        texts.append(text)
        if column is not None:
            texts.append(_percent_encode(as_text(rows.column(column)), escaped))
    if not before:
        return ["".join(text for text, _ in parts)] * rows.num_rows
    return list(pc.binary_join_element_wise(*texts, "").to_pylist())


def _percent_encode(texts: pa.Array, characters: Sequence[str]) -> pa.Array:
    for character in characters:
        encoded = "".join(f"%{byte:02X}" for byte in character.encode())
        texts = pc.replace_substring(texts, pattern=character, replacement=encoded)
    return texts

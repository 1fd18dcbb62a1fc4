"""Columns and metadata of a file in its path."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

from penstock.core.errors import Permanent
from penstock.sdk.columns.names import AmbiguousName, find_name

METADATA = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("name", pa.string()),
        pa.field("modified", pa.timestamp("us", tz="UTC")),
        pa.field("size", pa.int64()),
        pa.field("position", pa.int64()),
    ]
)
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_GENERATION = re.compile(r"#\d+\Z")
_HIVE = re.compile(r"([^/=]+)=([^/]*)\Z")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def values_of_columns(path: str, columns: pa.Schema) -> dict[str, str | None]:
    """Returns the values of the columns that a path contains. Raises Permanent."""
    values = _hive_values(path)
    names = list(values)
    try:
        found = {column: find_name(column, names) for column in columns.names}
    except AmbiguousName as error:
        raise Permanent(f"cannot read {path}: {error}", code="ambiguous-column") from error
    return {column: values[names[index]] for column, index in found.items() if index >= 0}


def add_path_columns(columns: pa.Schema, path: str) -> pa.Schema:
    """Returns the columns of a file, and those that only its path contains."""
    for name, value in _hive_values(path).items():
        if find_name(name, columns.names) < 0:
            is_integer = value is not None and _INTEGER.fullmatch(value)
            columns = columns.append(pa.field(name, pa.int64() if is_integer else pa.string()))
    return columns


def path_metadata(origin: str, generations: bool) -> dict[str, str]:
    """Returns the metadata that the path of a file determines.

    With `generations` a path that ends in `#NUMBER` may be the origin of a truncated file, and has
    no metadata.
    """
    if generations and _GENERATION.search(origin):
        return {}
    return {"path": origin, "name": PurePosixPath(origin).name}


def _hive_values(path: str) -> dict[str, str | None]:
    """Returns the values of the directories `name=value` of a path."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        if match := _HIVE.match(part):
            values[unquote(match[1])] = None if match[2] == HIVE_NULL else unquote(match[2])
    return values

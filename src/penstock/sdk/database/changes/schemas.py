"""The schemas of the rows in a journal, in a file beside it.

The receiver adds a schema before the first row that needs it. A source reads rows with the schema
of its `version`, and ends a batch before a row that needs a later one.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.core.files.durable import replace_durably
from penstock.sdk.database.changes.evolution import evolve
from penstock.sdk.database.types import without_declared

_NAME = "schemas"
_VERSION = b"penstock.schema_version"
"""The metadata key of columns for the number of changes that they have."""


@dataclass(frozen=True)
class JournalSchema:
    """The columns of the rows at a position of a journal and later ones."""

    position: int
    columns: pa.Schema


def read_schemas(directory: Path) -> list[JournalSchema]:
    """Returns the schemas of a journal after each change, in their order."""
    try:
        stored = json.loads((directory / _NAME).read_text("ascii"))
    except FileNotFoundError:
        return []
    return [JournalSchema(each["position"], _unpack(each["arrow"])) for each in stored]


def version_of(columns: pa.Schema) -> int:
    """Returns the number of changes that columns have."""
    return int((columns.metadata or {}).get(_VERSION, b"0"))


def with_version(columns: pa.Schema, version: int) -> pa.Schema:
    """Returns columns with the number of changes that they have."""
    return columns.with_metadata({**(columns.metadata or {}), _VERSION: str(version).encode()})


class SchemaWriter:
    """The columns of a stream, as its receiver changes them.

    `columns` are those of the source, and `reserved` the names of its other columns.
    """

    def __init__(
        self, directory: Path, table: str, columns: pa.Schema, reserved: tuple[str, ...]
    ) -> None:
        self._directory, self._table, self._reserved = directory, table, reserved
        self._schemas = read_schemas(directory)
        self._columns = columns
        for schema in self._schemas[version_of(columns) :]:
            self._columns = self._evolved(schema.columns, f"record {schema.position}")

    def changed(self, found: pa.Schema, at: str) -> pa.Schema | None:
        """Returns the columns that rows with the columns `found` need; None for those of before.

        `at` is the position of the rows in the log. Raises Permanent if they do not fit.
        """
        columns = self._evolved(without_declared(found), at)
        return None if columns == self._columns else columns

    def add(self, position: int, columns: pa.Schema) -> None:
        """Stores the columns of the rows at a position and later ones durably."""
        self._columns = columns
        self._schemas.append(JournalSchema(position, columns))
        stored = [{"position": s.position, "arrow": _pack(s.columns)} for s in self._schemas]
        replace_durably(self._directory / _NAME, json.dumps(stored))

    def _evolved(self, found: pa.Schema, at: str) -> pa.Schema:
        return evolve(self._columns, found, table=self._table, at=at, reserved=self._reserved)


def _pack(columns: pa.Schema) -> str:
    return base64.b64encode(columns.serialize().to_pybytes()).decode()


def _unpack(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))

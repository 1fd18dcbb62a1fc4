"""Inference of the columns of files from a sample of files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.reader import FileReader
from penstock.connectors.files.storage import Entry, Storage
from penstock.core.errors import DecodeError, PlanError
from penstock.sdk.columns.schema_union import union_schemas

_DECLARE = "Declare the columns, as in schema: id LONG, name STRING, at TIMESTAMP."


def infer_columns(reader: FileReader, sample: Sequence[tuple[Storage, Entry]]) -> pa.Schema | None:
    """Infers the columns of all files of a sample; None if the files are empty.

    Ignores damaged files. Raises PlanError if all files are damaged or a column has several types.
    """
    schemas: list[pa.Schema] = []
    errors: list[DecodeError] = []
    for storage, entry in sample:
        try:
            schema = reader.infer_schema(storage, entry.path, _range(storage, entry))
        except DecodeError as error:
            errors.append(error)
        else:
            schemas += [schema] if schema else []
    if schemas:
        return _unify(schemas, sample)
    if errors:
        raise PlanError(errors[0].message, code="missing-schema", hint=errors[0].hint)
    if any(entry.size for _, entry in sample):
        raise PlanError(
            f"cannot infer the columns of {_names(sample)}: expected records, found none that can "
            "be decoded",
            code="missing-schema",
            hint=f"Replace damaged files, or set format to the format of the files. {_DECLARE}",
        )
    return None


def _unify(schemas: list[pa.Schema], sample: Sequence[tuple[Storage, Entry]]) -> pa.Schema:
    try:
        return union_schemas(schemas)
    except pa.ArrowException as error:
        raise PlanError(
            f"cannot infer the columns of {_names(sample)}: a column has several types",
            code="missing-schema",
            detail=str(error),
            hint=_DECLARE,
        ) from error


def _names(sample: Sequence[tuple[Storage, Entry]]) -> str:
    return ", ".join(_range(storage, entry).display_path for storage, entry in sample)


def _range(storage: Storage, entry: Entry) -> FileRange:
    return FileRange(storage.url(entry.path), entry.size, 0)

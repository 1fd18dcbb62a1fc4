"""Arrow to CSV records by pyarrow.csv."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.sdk.kit.arrays import joined
from penstock.sdk.kit.columns import rebuild
from penstock.sdk.kit.lines import split
from penstock.sdk.kit.values import Times, text_type, to_text


def records(
    rows: pa.RecordBatch, delimiter: str, nulls: Sequence[str], times: Times
) -> pa.BinaryArray:
    """One record for each row, without its line end. Raises where several have to be told apart."""
    table = pa.table([_writable(c, times) for c in rows.columns], names=rows.schema.names)
    text = _text(table, delimiter, nulls)
    found = split(text)
    if len(found) == rows.num_rows:
        return found
    if rows.num_rows > 1:
        raise ValueError("a record has several lines")
    return pa.array([text.removesuffix(b"\n")], pa.binary())


def header(names: Sequence[str], delimiter: str) -> bytes:
    """The line of column names."""
    table = pa.table([[name] for name in names], names=list(names))
    return joined(pa.array([_text(table, delimiter, ("",)).removesuffix(b"\n")], pa.binary()))


def _text(table: pa.Table, delimiter: str, nulls: Sequence[str]) -> bytes:
    """Quotes only where needed: for a delimiter, a quote, a line end, or what would be a null."""
    if not any(_like_null(column, nulls) for column in table.columns):
        try:
            return _written(table, delimiter, "none")
        except pa.ArrowInvalid:
            pass
    return _written(table, delimiter, "needed")


def _like_null(column: pa.ChunkedArray, nulls: Sequence[str]) -> bool:
    if not pa.types.is_string(column.type):
        return False
    texts = pa.array(sorted({*nulls, ""}))
    return bool(pc.any(pc.is_in(column.drop_null(), texts)).as_py())


def _written(table: pa.Table, delimiter: str, quoting: str) -> bytes:
    out = io.BytesIO()
    options = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
    csv.write_csv(table, out, options)
    return out.getvalue()


def _writable(array: pa.Array, times: Times) -> pa.Array:
    wanted = text_type(array.type, times)
    return rebuild(array, wanted, lambda values, type_: to_text(values, type_, times))

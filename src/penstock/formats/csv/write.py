"""Arrow to CSV records by pyarrow.csv."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.sdk.columns.binary_arrays import join_lines
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.columns.text_output import text_type, to_text
from penstock.sdk.columns.text_values import Times
from penstock.sdk.columns.times import has_iso_text, iso_text
from penstock.sdk.encoding.lines import split_lines


def records(
    rows: pa.RecordBatch, delimiter: str, nulls: Sequence[str], times: Times
) -> pa.BinaryArray:
    """Returns one record per row, without line ends. Raises for rows that cannot be separated."""
    table = pa.table([_writable(column, times) for column in rows.columns], names=rows.schema.names)
    text = _text(table, delimiter, nulls)
    texts = split_lines(text)
    if len(texts) == rows.num_rows:
        return texts
    if rows.num_rows > 1:
        raise ValueError("a record contains a line break")
    return pa.array([text.removesuffix(b"\n")], pa.binary())


def header(names: Sequence[str], delimiter: str) -> bytes:
    """Returns the header line."""
    table = pa.table([[name] for name in names], names=list(names))
    return join_lines(pa.array([_text(table, delimiter, ("",)).removesuffix(b"\n")], pa.binary()))


def _text(table: pa.Table, delimiter: str, nulls: Sequence[str]) -> bytes:
    """Quotes fields only if needed: for delimiters, quotes, line ends and texts that mean null."""
    if not any(_like_null(column, nulls) for column in table.columns):
        try:
            return _write(table, delimiter, "none")
        except pa.ArrowInvalid:
            pass
    return _write(table, delimiter, "needed")


def _like_null(column: pa.ChunkedArray, nulls: Sequence[str]) -> bool:
    if not pa.types.is_string(column.type):
        return False
    texts = pa.array(sorted({*nulls, ""}))
    return bool(pc.any(pc.is_in(column.drop_null(), texts)).as_py())


def _write(table: pa.Table, delimiter: str, quoting: str) -> bytes:
    out = io.BytesIO()
    options = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
    csv.write_csv(table, out, options)
    return out.getvalue()


def _writable(array: pa.Array, times: Times) -> pa.Array:
    if has_iso_text(array.type) and (times == "iso" or not pa.types.is_timestamp(array.type)):
        return iso_text(array)
    target = text_type(array.type, times)
    return rebuild(array, target, lambda values, type_: to_text(values, type_, times))

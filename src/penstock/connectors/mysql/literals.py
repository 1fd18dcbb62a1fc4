"""Values of rows as literals of SQL, and the values that a column of MySQL would change.

Source: https://dev.mysql.com/doc/refman/8.4/en/literals.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import Rejected
from penstock.sdk.columns.display import json_of
from penstock.sdk.database.types import declared_type
from penstock.sdk.database.values import check_second_digits

_MIN_DAY, _MAX_DAY = -719_162, 2_932_896
"""The days of 0001-01-01 and 9999-12-31 since 1970."""
_BLOCK_BYTES = 16 * 2**20
_ESCAPES = (("\\", "\\\\"), ("'", "\\'"), ("\0", "\\0"))


def blocks(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yields rows in parts of bounded size."""
    if rows.num_rows < 2 or rows.nbytes <= _BLOCK_BYTES:
        yield rows
        return
    middle = rows.num_rows // 2
    yield from blocks(rows.slice(0, middle))
    yield from blocks(rows.slice(middle))


def literals(rows: pa.RecordBatch, target: pa.Schema) -> list[pa.StringArray]:
    """Returns the values of each column as literals; null is null.

    Raises Rejected for a value that the column of `target` would change.
    """
    check_stored(rows, target)
    return [
        _literal(column, field) for column, field in zip(rows.columns, rows.schema, strict=True)
    ]


def tuples(columns: Sequence[pa.StringArray]) -> pa.StringArray:
    """Returns the rows of columns of literals, each in parentheses."""
    joined = pc.binary_join_element_wise(
        *columns, ", ", null_handling="replace", null_replacement="NULL"
    )
    return pc.binary_join_element_wise("(", joined, ")", "")


def conditions(names: Sequence[str], columns: Sequence[pa.StringArray]) -> pa.StringArray:
    """Returns the condition that quoted columns have the values of a row, for each row."""
    parts: list[pa.StringArray | str] = ["("]
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        parts += [f"{' AND ' if index else ''}{name} = ", column]
    return pc.binary_join_element_wise(*parts, ")", "")


def chunks(texts: pa.StringArray, max_bytes: int, max_count: int) -> Iterator[list[str]]:
    """Yields texts in parts of at most `max_bytes`, if each text has fewer, and `max_count`."""
    chunk: list[str] = []
    size = 0
    for text, length in zip(
        texts.to_pylist(), pc.binary_length(texts).to_pylist(), strict=True
    ):  # fmt: skip
        if chunk and (size + length > max_bytes or len(chunk) == max_count):
            yield chunk
            chunk, size = [], 0
        chunk.append(text)
        size += length + 4
    if chunk:
        yield chunk


def _literal(column: pa.Array, field: pa.Field) -> pa.StringArray:
    type_ = field.type
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _texts(column, lambda value: f"X'{value.as_py().hex()}'")
    texts = plain_texts(column, field)
    is_number = pa.types.is_integer(type_) or pa.types.is_decimal(type_)
    return texts if is_number or pa.types.is_boolean(type_) else _quoted(texts)


def plain_texts(column: pa.Array, field: pa.Field) -> pa.StringArray:
    """Returns the values of a column, other than binary ones, as texts of MySQL."""
    type_ = field.type
    if pa.types.is_boolean(type_):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(type_):
        return _texts(column, lambda value: f"{value.as_py():f}")
    elif pa.types.is_nested(type_):
        return _texts(column, lambda value: json_of(value, field))
    elif pa.types.is_timestamp(type_):
        column = column.cast(pa.timestamp("us"))
    return column.cast(pa.string())


def _texts(column: pa.Array, to_text: object) -> pa.StringArray:
    assert callable(to_text)
    return pa.array([to_text(value) if value.is_valid else None for value in column], pa.string())


def _quoted(texts: pa.StringArray) -> pa.StringArray:
    for char, escape in _ESCAPES:
        texts = pc.replace_substring(texts, char, escape)
    return pc.binary_join_element_wise("'", texts, "'", "")


def check_stored(rows: pa.RecordBatch, target: pa.Schema) -> None:
    """Raises Rejected for a value that the column of `target` would change without a warning."""
    for column, name in zip(rows.columns, rows.schema.names, strict=True):
        _check_column(column, target.field(name))


def _check_column(column: pa.Array, target: pa.Field) -> None:
    declared, type_ = declared_type(target), column.type
    if pa.types.is_timestamp(type_):
        check_second_digits(column, target.name, second_digits(declared))
        column, type_ = column.cast(pa.timestamp("us")).cast(pa.date32(), safe=False), pa.date32()
    if pa.types.is_date(type_):
        days = column.cast(pa.int32())
        wrong = pc.or_(pc.less(days, _MIN_DAY), pc.greater(days, _MAX_DAY))
        _reject(wrong, target, "stores dates from 0001-01-01 to 9999-12-31")
    elif pa.types.is_floating(type_):
        _reject(pc.invert(pc.is_finite(column)), target, "does not store NaN and infinities")
        _check_decimal_places(column, target, declared)
    elif declared.startswith("year"):
        years = pc.and_(pc.greater(column, 0), pc.less(column, 100))
        _reject(years, target, "stores years with 4 digits")
    elif pa.types.is_binary(type_) and (match := re.fullmatch(r"(binary|bit)\((\d+)\)", declared)):
        size = int(match[2]) if match[1] == "binary" else (int(match[2]) + 7) // 8
        _reject(pc.not_equal(pc.binary_length(column), size), target, f"stores {size} bytes")
    elif pa.types.is_string(type_) or pa.types.is_large_string(type_):
        _check_text(column, target, declared)


def _check_text(column: pa.StringArray, target: pa.Field, declared: str) -> None:
    kind = declared.partition("(")[0]
    if kind == "time":
        digits = second_digits(declared)
        wrong = pc.match_substring_regex(column, rf"\.\d{{{digits}}}\d*[1-9]")
        _reject(wrong, target, f"stores {digits} digits of a fraction of a second")
    elif kind in ("char", "enum", "set"):
        _reject(pc.match_substring_regex(column, " $"), target, "does not store spaces at the end")
    if kind in ("enum", "set"):
        members = pa.array(
            [text.replace("''", "'") for text in re.findall(r"'((?:[^']|'')*)'", declared)],
            pa.string(),
        )
        is_number = pc.match_substring_regex(column, r"^\s*\d+$")
        wrong = pc.and_(is_number, pc.invert(pc.is_in(column, members)))
        _reject(wrong, target, f"stores {', '.join(members.to_pylist())}")


def _check_decimal_places(column: pa.Array, target: pa.Field, declared: str) -> None:
    match = re.match(r"(?:float|double)\(\d+,(\d+)\)", declared)
    if match is None:
        return
    texts = [None if value is None else f"{value:.{match[1]}f}" for value in column.to_pylist()]
    rounded = pa.array(texts, pa.string()).cast(column.type)
    _reject(pc.not_equal(column, rounded), target, f"stores {match[1]} decimal places")


def second_digits(declared: str) -> int:
    """Returns the digits of a fraction of a second that a column of a declared type stores."""
    match = re.search(r"\((\d)\)", declared)
    return int(match[1]) if match else 0


def _reject(wrong: pa.BooleanArray, target: pa.Field, expected: str) -> None:
    if pc.any(wrong).as_py():
        raise Rejected(
            f'column "{target.name}" of the table {expected}', code="wrong-type",
            hint="Change the type of the column, or convert the value in a transform.",
        )  # fmt: skip

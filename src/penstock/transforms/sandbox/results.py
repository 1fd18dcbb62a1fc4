"""Results of sandbox processes as rows of Arrow: exact values of the columns, or failures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, RecordError
from penstock.core.text import shorten
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import WrongType
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.columns.json_mark import has_json
from penstock.sdk.columns.json_text import text_value
from penstock.sdk.columns.rows import INVALID, array_of
from penstock.sdk.columns.type_names import sql_name, with_article
from penstock.sdk.record import Failure

_SAFE = float(2**53)
_TEXT = TextConversion()


@dataclass(frozen=True)
class Results:
    """Columns of result rows, the number of result rows of each row, and failures.

    A failure has the index of the row, a message, and a line and a column of the code.
    """

    counts: Sequence[int]
    columns: Sequence[Sequence[Any]]
    failures: Sequence[tuple[int, str, int, int]]

    @classmethod
    def read(cls, content: bytes, *, exact_integers: bool) -> Results:
        """Returns the results in a reply. Without `exact_integers` large ones may be rounded."""
        parsed = json.loads(content, parse_int=int if exact_integers else _as_float_if_large)
        return cls(parsed["counts"], parsed["columns"], parsed["failures"])

    def rows(self, schema: pa.Schema) -> Iterator[pa.RecordBatch | Failure]:
        """Yields rows with the columns of a schema, and failures of rows that do not fit them."""
        offsets = list(accumulate(self.counts, initial=0))

        def attempt(start: int, stop: int) -> pa.RecordBatch:
            inside = slice(offsets[start], offsets[stop])
            return _batch([column[inside] for column in self.columns], schema, inside)

        for start, _, result in bisect_failures(len(self.counts), attempt):
            yield Failure(start, result) if isinstance(result, RecordError) else result


def _as_float_if_large(text: str) -> int | float:
    value = int(text)
    return value if abs(value) < 2**53 else float(text)


def _batch(columns: list[Sequence[Any]], schema: pa.Schema, inside: slice) -> pa.RecordBatch:
    if not columns:
        rows = pa.array([{}] * (inside.stop - inside.start), pa.struct([]))
        return pa.RecordBatch.from_struct_array(rows)
    arrays = [_array(values, field) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Converts JSON values to the type of a field. Raises DecodeError."""
    try:
        if has_json(field):
            values = [text_value(value, field) for value in values]
        return array_of(values, field.type, _leaf)
    except WrongType as error:
        raise DecodeError(str(error.within(field.name)), code="wrong-type") from error
    except INVALID as error:
        found = next((value for value in values if value is not None), None)
        text = shorten(json.dumps(found, ensure_ascii=False, default=str), 100)
        message = f'column "{field.name}": {text} is not {with_article(sql_name(field.type))}'
        raise DecodeError(message, code="wrong-type") from error


class _MayBeRounded(WrongType):
    """A number that the code cannot compute exactly."""

    def __str__(self) -> str:
        return f"{super().__str__()}; a number from 2^53 on may be rounded"


def _leaf(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Converts values, without numbers that the code may have rounded."""
    is_exact = not pa.types.is_float64(array.type) or pa.types.is_floating(type_)
    if not is_exact and pc.any(pc.greater_equal(pc.abs(array), _SAFE)).as_py():
        raise _MayBeRounded(array, type_, _leaf)
    return _TEXT(array, type_)

"""Arrow to CSV records, which are read back with the same options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import PlanError
from penstock.formats.csv.records import Dialect
from penstock.sdk.columns.binary_arrays import concatenated_values
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.scalar_parsing import TimeForm, Times
from penstock.sdk.columns.text_output import to_text
from penstock.sdk.columns.times import has_iso_text

_MARK = "\ufeff"
"""The byte order mark, which is skipped at the start of a file."""

_DIGITS = {"seconds": 6, "millis": 3, "micros": 0, "nanos": 0}
"""The digits of microseconds after the decimal point of each unit."""


@dataclass(frozen=True)
class Writer:
    """A writer of records. Raises ValueError for a value that would be read as another one."""

    dialect: Dialect
    nulls: Sequence[str]
    comment: str
    times: Times

    def records(self, rows: pa.RecordBatch) -> pa.BinaryArray:
        """Returns one record per row, without line ends."""
        fields = [
            self._fields(_texts(column, self.times), _is_text(column.type), name, first=not index)
            for index, (name, column) in enumerate(zip(rows.schema.names, rows, strict=True))
        ]
        joined = pc.binary_join_element_wise(*fields, self.dialect.delimiter) if fields else None
        return pa.array([b""] * rows.num_rows) if joined is None else joined.cast(pa.binary())

    def header(self, names: Sequence[str]) -> bytes:
        """Returns the header line. Raises PlanError for a name that requires missing quotes."""
        fields = []
        for index, name in enumerate(names):
            texts = pa.array([name])
            needed = self._needs_quotes(texts, first=not index)
            if not self.dialect.quote and needed[0].as_py():
                raise PlanError(
                    f'csv cannot write the column name "{name}" without quotes',
                    code="invalid-name",
                    hint="Set quote, or rename the column.",
                )
            fields.append(self._quote(texts, needed, name)[0].as_py())
        return self.dialect.delimiter.join(fields).encode() + b"\n"

    def _fields(self, texts: pa.StringArray, is_text: bool, name: str, first: bool) -> pa.Array:
        like_null = pc.is_in(texts.drop_null(), pa.array(sorted({*self.nulls, ""}), pa.string()))
        if not is_text and pc.any(like_null).as_py():
            raise ValueError(f'a value of column "{name}" is a text that means null')
        fields = self._quote(texts, self._needs_quotes(texts, first), name)
        if not fields.null_count:
            return fields
        null = self._null_text(first)
        if null is None:
            raise ValueError(f'column "{name}" is null, and no text of the option nulls means null')
        return fields.fill_null(null)

    def _needs_quotes(self, texts: pa.StringArray, first: bool) -> pa.BooleanArray:
        """Returns whether a text has special characters or means null; null for a null."""
        needed = pc.is_in(texts, pa.array(sorted({*self.nulls, ""}), pa.string()))
        if np.isin(concatenated_values(texts.drop_null().cast(pa.binary())), self._special).any():
            for byte in self._special:
                needed = pc.or_(needed, pc.match_substring(texts, chr(byte)))
        for start in [self.comment, _MARK] if first else []:
            if start:
                needed = pc.or_(needed, pc.starts_with(texts, start))
        return pc.if_else(texts.is_valid(), needed, False)

    @cached_property
    def _special(self) -> list[int]:
        return [
            ord(character)
            for character in ("\n", "\r", self.dialect.delimiter, self.dialect.quote)
            if character
        ]

    def _quote(self, texts: pa.StringArray, needed: pa.BooleanArray, name: str) -> pa.StringArray:
        if not pc.any(needed).as_py():
            return texts
        quote, escape = self.dialect.quote, self.dialect.escape
        if not quote:
            raise ValueError(f'a text of column "{name}" requires quotes')
        inner = texts
        if escape and escape != quote:
            inner = pc.replace_substring(inner, escape, escape * 2)
        inner = pc.replace_substring(inner, quote, quote * 2)
        return pc.if_else(needed, pc.binary_join_element_wise(quote, inner, quote, ""), texts)

    def _null_text(self, first: bool) -> str | None:
        """Returns the text that is written for null: the empty text, or the first possible one."""
        for text in sorted(self.nulls, key=lambda text: text != ""):
            needed = any(chr(byte) in text for byte in self._special)
            starts_comment = first and self.comment and text.startswith(self.comment)
            if not needed and not starts_comment and not text.startswith(_MARK):
                return text
        return None


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _texts(array: pa.Array, times: Times) -> pa.StringArray:
    if has_iso_text(array.type) and (times == "iso" or not pa.types.is_timestamp(array.type)):
        return cast(array, pa.string())
    if pa.types.is_timestamp(array.type):
        digits = _DIGITS[times]
        numbers = Conversion(TimeForm(times))(array, pa.decimal128(30, digits)).cast(pa.string())
        return pc.replace_substring_regex(numbers, r"\.?0+$", "") if digits else numbers
    if pa.types.is_binary(array.type):
        return to_text(array, pa.string(), times)
    return cast(array, pa.string())

"""CSV records to Arrow by pyarrow.csv, with a fallback for single records."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.core.errors import DecodeError
from penstock.core.text import plural, shorten
from penstock.formats.csv.records import Dialect, may_be_open
from penstock.sdk.columns.binary_arrays import join_lines, values_and_offsets
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.columns.scalar_parsing import TimeForm, canonical, time_hint
from penstock.sdk.columns.type_names import sql_name, with_article

_NORMAL = Dialect()
_TRUE, _FALSE = ["true", "True", "TRUE", "1"], ["false", "False", "FALSE", "0"]


class Suspect(ValueError):
    """The error of records that require the fallback."""


@dataclass(frozen=True)
class Reader:
    """A reader of records with the fields `names`, in order, as rows of `schema`."""

    names: tuple[str, ...]
    schema: pa.Schema
    dialect: Dialect
    nulls: tuple[str, ...]
    form: TimeForm

    def read(self, records: pa.BinaryArray) -> pa.RecordBatch:
        """Returns one row per record; no record is blank.

        Raises any exception for invalid records.
        """
        values, offsets = values_and_offsets(records)
        if (len(self.names) > 1 and (np.diff(offsets) == 0).any()) or np.isin(
            values, (10, 13)
        ).any():
            raise Suspect
        if may_be_open(values, offsets, self.dialect):
            raise Suspect
        text = join_lines(records)
        rows = self._parse(text, self.names, self.dialect, self.nulls, len(records))
        if any(_is_infinite(column) for column in rows.columns):
            raise Suspect
        return rows

    def read_normalized(self, records: list[bytes]) -> pa.RecordBatch:
        """Returns one row per text from `normalize`."""
        names = tuple(self.schema.names)
        text = b"".join(record + b"\n" for record in records)
        return self._parse(text, names, _NORMAL, ("",), len(records), several_lines=True)

    def _parse(
        self,
        text: bytes,
        names: tuple[str, ...],
        dialect: Dialect,
        nulls: tuple[str, ...],
        count: int,
        several_lines: bool = False,
    ) -> pa.RecordBatch:
        unique = [
            name if name not in names[:index] else f"\0{index}" for index, name in enumerate(names)
        ]
        types = {
            field.name: _read_type(field.type) for field in self.schema if field.name in unique
        }
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                column_names=unique, use_threads=False, block_size=len(text) + 1
            ),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote or False,
                newlines_in_values=several_lines,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                column_types=types or {unique[0]: pa.binary()},
                include_columns=list(types) or unique[:1],
                null_values=list(nulls),
                true_values=_TRUE,
                false_values=_FALSE,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if table.num_rows != count:
            raise Suspect
        return conform(table, self.schema, self._convert)

    def _convert(self, array: pa.Array, type_: pa.DataType) -> pa.Array:
        if pa.types.is_string(array.type) and not pa.types.is_string(type_):
            array = pc.ascii_trim_whitespace(array)
        return TextConversion(self.form)(array, type_)

    def normalize(self, record: bytes) -> bytes:
        """Returns the columns of `schema` as a record in normal form. Raises DecodeError."""
        record = record.rstrip(b"\r\n")
        if not record and len(self.names) > 1:
            raise DecodeError("the record is empty", code="no-value")
        fields = self.dialect.fields(record)
        if fields is None:
            raise DecodeError("a quote is not closed", code="open-quote")
        if any(not quoted and (b"\n" in text or b"\r" in text) for text, quoted in fields):
            raise DecodeError("expected one line, found several", code="several-records")
        if len(fields) != len(self.names):
            code = "too-many-columns" if len(fields) > len(self.names) else "too-few-columns"
            expected = plural(len(self.names), "column")
            raise DecodeError(f"expected {expected}, found {len(fields)}", code=code)
        values = dict(zip(reversed(self.names), reversed(fields), strict=True))
        return b",".join(self._value(field, values.get(field.name)) for field in self.schema)

    def _value(self, field: pa.Field, csv_field: tuple[bytes, bool] | None) -> bytes:
        text, quoted = csv_field or (b"", False)
        value = _text(text, field.name)
        may_be_empty = pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        may_be_null = not quoted or not may_be_empty
        if csv_field is None or (may_be_null and (value in self.nulls or (quoted and not value))):
            if not field.nullable:
                raise DecodeError(
                    f'column "{field.name}" is null; expected a value', code="missing-value"
                )
            return b""
        if not pa.types.is_string(field.type):
            value = value.strip()
        normalized = canonical(value, field.type, self.form)
        if normalized is None:
            expected = with_article(sql_name(field.type))
            quoted_value = json.dumps(shorten(value, 100), ensure_ascii=False)
            message = f'column "{field.name}": {quoted_value} is not {expected}'
            hint = time_hint(value, field.type, self.form)
            raise DecodeError(message, code="wrong-type", hint=hint)
        return b'"' + normalized.encode().replace(b'"', b'""') + b'"'


def _read_type(type_: pa.DataType) -> pa.DataType:
    """Returns the type that pyarrow.csv reads for a type.

    pyarrow.csv parses 0xFF as an integer, and some decimals that do not fit as other decimals.
    """
    is_text = (
        pa.types.is_integer(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_time(type_)
    )
    return pa.string() if is_text else type_


def _is_infinite(column: pa.Array) -> bool:
    """Returns whether a value is infinite, which may be a number out of range."""
    return pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py() is True


def _text(value: bytes, column: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{value[error.start]:02x}"
        raise DecodeError(f'column "{column}" is not UTF-8: {byte}', code="not-utf8") from None

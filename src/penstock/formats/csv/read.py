"""CSV records to Arrow by pyarrow.csv, and record by record where it fails."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import csv

from penstock.core.errors import DecodeError
from penstock.core.text import plural, shorten
from penstock.formats.csv.records import Dialect, may_be_open
from penstock.sdk.kit.arrays import joined, spans
from penstock.sdk.kit.columns import article, conform, sql_name
from penstock.sdk.kit.values import Times, canonical, from_text

_PLAIN = Dialect()
_TRUE, _FALSE = ["true", "True", "TRUE", "1"], ["false", "False", "FALSE", "0"]


class Suspect(ValueError):
    """Records that have to be looked at one by one."""


@dataclass(frozen=True)
class Reader:
    """Reads records whose fields are `names`, in order, as `schema`."""

    names: tuple[str, ...]
    schema: pa.Schema
    dialect: Dialect
    nulls: tuple[str, ...]
    times: Times

    def read(self, records: pa.BinaryArray) -> pa.RecordBatch:
        """One row for each record, none of which is blank; raises where any is wrong."""
        values, offsets = spans(records)
        if (np.diff(offsets) == 0).any() or (values == 10).any() or (values == 13).any():
            raise Suspect
        if may_be_open(values, offsets, self.dialect):
            raise Suspect
        return self._parse(joined(records), self.names, self.dialect, self.nulls, len(records))

    def read_mended(self, records: list[bytes]) -> pa.RecordBatch:
        """One row for each of the texts that `mend` made."""
        names = tuple(self.schema.names)
        text = b"".join(record + b"\n" for record in records)
        return self._parse(text, names, _PLAIN, ("",), len(records), several_lines=True)

    def _parse(
        self,
        text: bytes,
        names: tuple[str, ...],
        dialect: Dialect,
        nulls: tuple[str, ...],
        count: int,
        several_lines: bool = False,
    ) -> pa.RecordBatch:
        unique = [n if n not in names[:i] else f"\0{i}" for i, n in enumerate(names)]
        types = {f.name: self._wide(f.type) for f in self.schema if f.name in unique}
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                column_names=unique, use_threads=False, block_size=len(text) + 1
            ),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote or False,
                escape_char=dialect.escape or False,
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
        return conform(table, self.schema, lambda a, type_: from_text(a, type_, self.times))

    def _wide(self, type_: pa.DataType) -> pa.DataType:
        if pa.types.is_decimal(type_):
            return pa.decimal128(38, type_.scale)
        if pa.types.is_integer(type_):
            return pa.decimal128(38, 0)  # pyarrow would take 0xFF for an integer
        if pa.types.is_timestamp(type_):
            return pa.string() if self.times == "iso" else pa.float64()
        return pa.string() if pa.types.is_binary(type_) or pa.types.is_time(type_) else type_

    def mend(self, record: bytes) -> bytes:
        """The columns of `schema` as one plainly written record. Raises DecodeError."""
        record = record.rstrip(b"\r\n")
        if not record:
            raise DecodeError("the record is empty", code="no-value")
        fields = self.dialect.fields(record)
        if fields is None:
            raise DecodeError("a quote is not closed", code="open-quote")
        if any(not quoted and (b"\n" in text or b"\r" in text) for text, quoted in fields):
            raise DecodeError("more than one line, and a record is one", code="several-records")
        if len(fields) != len(self.names):
            code = "too-many-columns" if len(fields) > len(self.names) else "too-few-columns"
            expected = plural(len(self.names), "column")
            raise DecodeError(f"expected {expected}, found {len(fields)}", code=code)
        found = dict(zip(reversed(self.names), reversed(fields), strict=True))
        return b",".join(self._value(field, found.get(field.name)) for field in self.schema)

    def _value(self, field: pa.Field, found: tuple[bytes, bool] | None) -> bytes:
        text, quoted = found or (b"", False)
        value = _text(text, field.name)
        may_be_empty = pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        loose = not quoted or not may_be_empty
        if found is None or (loose and (value in self.nulls or (quoted and not value))):
            if not field.nullable:
                raise DecodeError(f'column "{field.name}" may not be null', code="missing-value")
            return b""
        if not pa.types.is_string(field.type):
            value = value.strip()
        plain = canonical(value, field.type, self.times)
        if plain is None:
            wanted = article(sql_name(field.type))
            shown = json.dumps(shorten(value, 100), ensure_ascii=False)
            message = f'column "{field.name}": {shown} is not {wanted}'
            raise DecodeError(message, code="wrong-type")
        return b'"' + plain.encode().replace(b'"', b'""') + b'"'


def _text(value: bytes, column: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        at = f"byte 0x{value[error.start]:02x}"
        raise DecodeError(f'column "{column}" is not UTF-8: {at}', code="not-utf8") from None

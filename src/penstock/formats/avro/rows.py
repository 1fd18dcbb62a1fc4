"""Values of an Avro schema as rows: of a record, or of each record of a union."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple, cast

import fastavro
import numpy as np
import pyarrow as pa
from fastavro import _read_py

from penstock.core.errors import DecodeError
from penstock.formats.avro.datum import codec, undecodable
from penstock.formats.avro.defaults import convert_defaults
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.avro_json import json_text
from penstock.sdk.columns.avro_schemas import check_arrays, is_recursive, records_of
from penstock.sdk.columns.avro_types import arrow_schema
from penstock.sdk.columns.avro_values import to_arrow
from penstock.sdk.columns.conform import Leaf, collect_decoded, concat_batches, conform
from penstock.sdk.columns.conversion import cast as exact
from penstock.sdk.encoding.json_texts import text_rows
from penstock.sdk.encoding.type_column import without_column
from penstock.sdk.record import Decoded


class Value(NamedTuple):
    """A value, and the number of its type in the union of the schema."""

    branch: int
    datum: Any


class _Branch(NamedTuple):
    """A type that is written, and the reader schema, if it is another one."""

    name: str
    writer: Any
    reader: Any
    columns: pa.Schema


class RowReader:
    """A reader of values of a schema as rows of `columns`.

    A union of records has rows of each record. Columns that a record does not have are null. With
    `type_column` this column has the full name of the record, with `as_json` the rows have the JSON
    text of any type. `reader` is a reader schema. Raises PlanError if a column has a type that is
    not supported, and DecodeError if a reader schema that is a union lacks a record.
    """

    def __init__(
        self, datum: Any, columns: pa.Schema, *, reader: Any = None,
        type_column: str | None = None, as_json: bool = False, conversion: Leaf = exact,
    ) -> None:  # fmt: skip
        self._conversion = conversion
        self.columns, self.type_column, self.as_json = columns, type_column, as_json
        self.is_union = isinstance(datum, list)
        check_arrays(datum)
        recursive = is_recursive(datum)
        self._read = _read_py.schemaless_reader if recursive else fastavro.schemaless_reader
        self._branches = list(self._make_branches(datum, reader))
        records = [] if as_json else records_of(datum)
        self._names = [field["name"] for _, record in records for field in record["fields"]]

    def _make_branches(self, datum: Any, reader: Any) -> list[_Branch]:
        names = [name for name, _ in records_of(datum)] if not self.as_json else None
        codecs = codec(datum)
        codecs = codecs if self.is_union else [codecs]
        readers: dict[str, Any] = {}
        if reader is not None:
            parsed = convert_defaults(codec(reader))
            if isinstance(reader, list) and names is not None:
                readers = dict(zip((name for name, _ in records_of(reader)), parsed, strict=True))
            else:
                readers = dict.fromkeys(names or ("",), parsed)
        branches = []
        for index, writer in enumerate(codecs):
            name = names[index] if names is not None else ""
            if reader is not None and name not in readers:
                raise DecodeError(
                    f'the configured schema has no record "{name}"', code="incompatible-schema"
                )
            columns = self._columns_of(datum, name, reader)
            branches.append(_Branch(name, writer, readers.get(name), columns))
        return branches

    def _columns_of(self, datum: Any, name: str, reader: Any) -> pa.Schema:
        if self.as_json:
            return pa.schema([])
        records = records_of(datum if reader is None else reader)
        record = dict(records).get(name, records[0][1])
        return arrow_schema(record, without_column(self.columns, self.type_column))

    @property
    def file_columns(self) -> pa.Schema:
        """The columns of the records; those that are not read have no type."""
        fields = {field.name: field for branch in self._branches for field in branch.columns}
        for name in self._names:
            fields.setdefault(name, pa.field(name, pa.null()))
        return pa.schema(list(fields.values()))

    def read(self, stream: BinaryIO) -> Value:
        """Reads a value. Raises errors of fastavro, and DecodeError."""
        number = 0
        if self.is_union:
            number = cast(int, fastavro.schemaless_reader(stream, "long"))
            if not 0 <= number < len(self._branches):
                raise DecodeError(
                    f"not Avro of this schema: there is no type {number} in the union",
                    code="not-avro",
                )
        branch = self._branches[number]
        return Value(number, self._read(stream, branch.writer, branch.reader))

    def decode(self, values: Sequence[Value]) -> Decoded:
        """Returns the rows of values; each value that does not fit the columns is a failure."""

        def attempt(start: int, stop: int) -> pa.RecordBatch:
            return self.rows(values[start:stop])

        return collect_decoded(bisect_failures(len(values), attempt, undecodable), self.columns)

    def rows(self, values: Sequence[Value]) -> pa.RecordBatch:
        """Returns the rows of values. Raises any Exception if one does not fit the columns."""
        if self.as_json:
            texts = [json_text(value.datum) for value in values]
            return conform(text_rows(texts, self.columns, "avro"), self.columns)
        numbers = np.array([value.branch for value in values], np.int64)
        present = np.unique(numbers).tolist()
        if len(present) == 1:
            return self._rows_of(self._branches[present[0]], [value.datum for value in values])
        parts = [
            self._rows_of(self._branches[number], [v.datum for v in values if v.branch == number])
            for number in present
        ]
        order = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
        return concat_batches(parts, self.columns).take(pa.array(order))

    def _rows_of(self, branch: _Branch, values: Sequence[Any]) -> pa.RecordBatch:
        fields, count = list(branch.columns), len(values)
        arrays = [to_arrow([value[field.name] for value in values], field) for field in fields]
        name = self.type_column or ""
        fields.append(pa.field(name, pa.string()))
        arrays.append(pa.repeat(pa.scalar(branch.name if name else None, pa.string()), count))
        schema = pa.schema(fields)
        return conform(
            pa.RecordBatch.from_arrays(arrays, schema=schema), self.columns, self._conversion
        )

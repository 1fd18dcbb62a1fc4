"""The parser `csv` of cases: texts of CSV as batches of the columns of the first text.

The header is on the first line of the first text, or of each text (`header` every), or nowhere
(none). Types are inferred from the first text with rows, or declared. Later texts are converted to
these types; a line with a value of another type is an error of its own. The only TIMESTAMP column
is the time column.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyarrow import csv

from penstock.core.errors import DecodeError
from penstock.handlers.errors import HandlerError
from penstock.handlers.metadata import with_time

LineErrors = list[tuple[int, DecodeError]]
_COUNT = re.compile(r"Expected \d+ columns, got \d+")
_VALUE = re.compile(r"CSV conversion error to (.+?): invalid value '(.*)'")


class CsvParser:
    """A parser that remembers the columns of its first text."""

    def __init__(
        self, header: str = "first", types: Mapping[str, pa.DataType] | None = None,
        time: str | None = None,
    ) -> None:  # fmt: skip
        self._header, self._time = header, time
        self._names = list(types) if types else None
        self._types = dict(types) if types else None
        self._is_first = True

    def parse(self, text: str) -> tuple[pa.RecordBatch | None, LineErrors]:
        """Returns the rows of a text, and the errors with their lines. Raises HandlerError.

        Without rows there is no batch.
        """
        lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
        if not lines:
            raise HandlerError.invalid("Empty CSV file")
        if self._header == "every" or (self._header == "first" and self._is_first):
            (_, header), *lines = lines
            found = _read([header], None, {}).column_names
            self._names = self._names or found
        self._is_first = False
        if not lines:
            return None, []
        if self._names is None:
            self._names = [f"f{i}" for i in range(len(_read([lines[0][1]], None, {}).column_names))]
        table, errors = self._rows(lines)
        if self._types is None:
            self._types = {field.name: field.type for field in table.schema}
        return (self._batch(table) if table.num_rows else None), errors

    def _rows(self, lines: Sequence[tuple[int, str]]) -> tuple[pa.Table, LineErrors]:
        """Returns the rows, and the errors of lines whose values have another type."""
        assert self._names is not None
        texts, types = [line for _, line in lines], self._types or {}
        try:
            return _read(texts, self._names, types), []
        except pa.ArrowInvalid as error:
            if match := _COUNT.search(str(error)):
                raise HandlerError.invalid(f"CSV parse error: {match[0]}") from None
        tables, errors = list[pa.Table](), LineErrors()
        for number, line in lines:
            try:
                tables.append(_read([line], self._names, types))
            except pa.ArrowInvalid as error:
                match = _VALUE.search(str(error))
                reason = f'expected {match[1]}, found "{match[2]}"' if match else str(error)
                errors.append((number, DecodeError(reason, code="wrong-type")))
        empty = pa.schema(types.items()).empty_table()
        return pa.concat_tables([empty, *tables]), errors

    def _batch(self, table: pa.Table) -> pa.RecordBatch:
        batch = table.combine_chunks().to_batches()[0]
        times = [field.name for field in batch.schema if pa.types.is_timestamp(field.type)]
        name = self._time or (times[0] if len(times) == 1 else None)
        if name is None:
            return batch
        schema = with_time(batch.schema, name)
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _read(
    lines: Sequence[str], names: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> pa.Table:
    """Returns the rows of lines, or the columns of a header without names. Raises ArrowInvalid."""
    return csv.read_csv(
        io.BytesIO("".join(f"{line}\n" for line in lines).encode()),
        read_options=csv.ReadOptions(column_names=names, use_threads=False),
        convert_options=csv.ConvertOptions(column_types=types),
    )

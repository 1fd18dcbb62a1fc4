"""Batches of rows of the input: one of each row, or several of files and tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from glob import has_magic
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.errors import OptionError, PenstockError, RecordError
from penstock.sdk.bisect_failures import as_record_error
from penstock.transforms.steps.codecs import PayloadCodec, make_codec
from penstock.transforms.steps.file_query import read_files
from penstock.transforms.steps.input_config import VALUE, MetadataColumn, StepsInput
from penstock.transforms.steps.paths import locate
from penstock.transforms.steps.table_query import read_tables

INPUT = "__input__"
"""The column with the name of the input, if there are several."""
_TYPES = {
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "timestamp": pa.timestamp("ns"),
    "binary": pa.binary(),
    "string": pa.string(),
}
_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True)
class Unit:
    """A batch before the steps.

    `original` are its rows as received, which an error output gets. `error` is the failure of
    their decoding. `input` is the name of the input, `indexes` are the rows of the input.
    """

    original: pa.RecordBatch
    batch: pa.RecordBatch | None
    input: str
    indexes: tuple[int, ...]
    error: RecordError | None = None


class InputReader:
    """Makes batches of the rows of an input."""

    def __init__(self, name: str, config: StepsInput, base: Path) -> None:
        self.name, self.config, self._base = name, config, base
        self._codec: PayloadCodec | None = (
            make_codec(config.decode, base) if config.decode is not None else None
        )

    def check(self) -> None:
        """Checks the format and the path of files. Raises UserError."""
        files = self.config.files
        is_local = files is not None and "://" not in files.path and not has_magic(files.path)
        if files is not None and is_local and not locate(files.path, self._base).exists():
            raise OptionError.of(
                "files", "path", message=f"there is no file {files.path}", code="missing-file"
            )
        if self._codec is None:
            return
        try:
            self._codec.check()
        except OptionError as error:
            raise OptionError.inside("decode", error) from None

    def units(self, row: pa.RecordBatch, index: int) -> Iterator[Unit]:
        """Yields the batches of a row of the input."""
        if self.config.files is not None:
            batches = read_files(self.config.files, self._base)
        elif self.config.tables is not None:
            batches = read_tables(self.config.tables)
        elif self.config.rows:
            known = [name for name in row.schema.names if name != INPUT]
            names = self.config.columns or known
            batches = iter([_with_lists(row.select(names), self.config.lists)])
        else:
            yield self._message(row, index)
            return
        for batch in batches:
            yield Unit(batch, batch, self.name, (index,))

    def _message(self, row: pa.RecordBatch, index: int) -> Unit:
        payloads = self._payloads(row)
        values = pa.array(payloads, pa.binary())
        fields = [pa.field(VALUE, pa.binary())]
        metadata = self._metadata(row, len(payloads))
        fields += [pa.field(name, array.type) for name, array in metadata]
        arrays = [array for _, array in metadata]
        original = pa.RecordBatch.from_arrays([values, *arrays], schema=pa.schema(fields))
        if self._codec is None:
            return Unit(original, original, self.name, (index,))
        try:
            batch = self._codec.decode(payloads)
            for name, array in self._metadata(row, batch.num_rows):
                batch = batch.append_column(name, array)
        except Exception as error:
            return Unit(original, None, self.name, (index,), record_error(error))
        return Unit(original, batch, self.name, (index,))

    def _payloads(self, row: pa.RecordBatch) -> list[bytes | None]:
        if self.config.payload is None:
            value = row.column(VALUE)[0].as_py()
            return [value.encode() if isinstance(value, str) else value]
        count = self.config.repeat
        if self.config.total is not None:
            before = int(row.column("counter")[0].as_py()) * count
            count = max(0, min(count, self.config.total - before))
        return [self.config.payload.encode()] * count

    def _metadata(self, row: pa.RecordBatch, count: int) -> list[tuple[str, pa.Array]]:
        found = []
        for name, config in self.config.metadata.items():
            value, type_ = _metadata_value(row, config)
            if value is not None:
                found.append((name, pa.array([value] * count, type_)))
        return found


def _with_lists(row: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Returns a row in which the columns of these names are lists of one value."""
    columns = [
        pa.array([column.to_pylist()], pa.list_(column.type)) if name in names else column
        for name, column in zip(row.schema.names, row.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=row.schema.names)


def _metadata_value(row: pa.RecordBatch, config: MetadataColumn) -> tuple[Any, pa.DataType]:
    if config.map:
        pairs = {key: _value(row, column) for key, column in config.map.items()}
        return [(key, str(value)) for key, value in pairs.items() if value is not None], _MAP
    if config.now:
        return time.time_ns(), pa.timestamp("ns")
    if config.column is None:
        return config.value, pa.string()
    type_ = _TYPES[config.type]
    value = _value(row, config.column)
    if isinstance(value, datetime):
        scalar = row.column(config.column)[0]
        return scalar.cast(pa.timestamp("us", tz="UTC")).value * 1000, type_
    return value.encode() if isinstance(value, str) and type_ == pa.binary() else value, type_


def _value(row: pa.RecordBatch, column: str) -> Any:
    return row.column(column)[0].as_py() if column in row.schema.names else None


def record_error(error: Exception) -> RecordError:
    """Returns the error of a record. Raises other errors of Penstock, such as of a connection."""
    if isinstance(error, PenstockError) and not isinstance(error, RecordError):
        raise error
    return as_record_error(error)


def merge(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of batches as one, by the names of columns. Raises ArrowInvalid."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive"
    ).combine_chunks()
    merged: list[pa.RecordBatch] = table.to_batches()
    return merged[0] if merged else batches[0].slice(0, 0)

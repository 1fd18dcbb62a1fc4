"""Content of a Parquet file: its row groups as batches of chosen columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
from pyarrow import parquet

from penstock.formats.parquet.int96 import split_times
from penstock.sdk.encoding.arrow_files import Unreadable

ROWS = 65_536
"""The maximum number of rows in a batch."""


class Content:
    """An opened Parquet file. Raises errors of PyArrow for a damaged one.

    With `truncate` INT96 timestamps lose digits below a microsecond where nanoseconds do not fit.
    """

    def __init__(self, file: BinaryIO, *, truncate: bool) -> None:
        self._truncate = truncate
        self._file = parquet.ParquetFile(file, pre_buffer=False)
        self._units = [
            parquet.ParquetFile(
                file,
                metadata=self._file.metadata,
                pre_buffer=False,
                coerce_int96_timestamp_unit=unit,
            )
            for unit in ("us", "s")
        ]
        self.metadata = self._file.metadata
        self.schema: pa.Schema = self._file.schema_arrow
        self._leaves = _leaf_indexes(self.schema)

    def batches(
        self, group: int, columns: Sequence[str]
    ) -> Iterator[list[pa.RecordBatch | Unreadable]]:
        """Yields the rows of a row group in order; each list is a batch of at most `ROWS`."""
        times = [name for name in columns if self._has_int96(name)]
        batches = self._read(self._file, group, columns)
        if not times:
            yield from ([batch] for batch in batches)
            return
        others = [self._read(file, group, times) for file in self._units]
        for nanos, micros, seconds in zip(batches, *others, strict=True):
            yield split_times(nanos, micros, seconds, truncate=self._truncate)

    @staticmethod
    def _read(
        file: parquet.ParquetFile, group: int, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        return file.iter_batches(ROWS, [group], columns=columns, use_threads=False)  # type: ignore[no-any-return]

    def flat_value_counts(self, group: int, columns: Sequence[str]) -> list[tuple[str, int]]:
        """Returns the number of values that the metadata has for each column without lists.

        The metadata of a damaged column chunk can abort the process: decode the columns before.
        """
        row_group, schema = self.metadata.row_group(group), self.metadata.schema
        return [
            (name, row_group.column(index).num_values)
            for name in columns
            for index in self._leaves[name]
            if schema.column(index).max_repetition_level == 0
        ]

    def _has_int96(self, name: str) -> bool:
        schema = self.metadata.schema
        return any(schema.column(index).physical_type == "INT96" for index in self._leaves[name])


def _leaf_indexes(schema: pa.Schema) -> dict[str, range]:
    """Returns the indexes of the column chunks of each column. The first of equal names counts."""
    indexes: dict[str, range] = {}
    start = 0
    for field in schema:
        count = _count_leaves(field.type)
        indexes.setdefault(field.name, range(start, start + count))
        start += count
    return indexes


def _count_leaves(type_: pa.DataType) -> int:
    if isinstance(type_, pa.BaseExtensionType):
        return _count_leaves(type_.storage_type)
    if pa.types.is_map(type_):
        return _count_leaves(type_.key_type) + _count_leaves(type_.item_type)
    if not pa.types.is_nested(type_):
        return 1
    return sum(_count_leaves(type_.field(index).type) for index in range(type_.num_fields))

"""Parquet: columnar files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

import pyarrow as pa
from pyarrow import parquet

from penstock.core.errors import DecodeError
from penstock.sdk.config import Config
from penstock.sdk.format import FileFormat, FileWriter
from penstock.sdk.kit.columns import projected, reason
from penstock.sdk.kit.tables import portable, read_batches
from penstock.sdk.record import Encoded, Read

_ROWS = 65_536


class ParquetConfig(Config):
    """Options of `parquet`."""

    compression: Literal["zstd", "snappy", "gzip", "lz4", "none"] = "zstd"
    """How column chunks are compressed."""
    row_group_rows: int = 1_000_000
    """The most rows of a row group."""


class Parquet(FileFormat[ParquetConfig]):
    """Parquet files (`.parquet`). For files only: there are no Parquet messages.

    ```yaml
    format: {type: parquet, compression: snappy}
    ```

    Columns go by name, and only those that are needed are read, row group by row group. Types may
    be wider or narrower than declared where nothing is lost (INT to BIGINT; BIGINT to INT while
    the values fit); a row whose value does not fit is an error. A file that is no Parquet, or is
    cut off, is one error with position 0. The position is the row's number.
    """

    messages: ClassVar[bool] = False
    extension: ClassVar[str] = ".parquet"
    needs_seek: ClassVar[bool] = True

    def read_file(
        self, file: BinaryIO, schema: pa.Schema, origin: str, read: Read
    ) -> Iterator[tuple[pa.RecordBatch, pa.Int64Array]]:
        return read_batches(self._batches(file, schema, read), schema, origin, read)

    def _batches(self, file: BinaryIO, schema: pa.Schema, read: Read) -> Iterator[pa.RecordBatch]:
        try:
            content = parquet.ParquetFile(file)
            names = projected(schema, read).names
            columns = [n for n in content.schema_arrow.names if n in names]
            for group in range(content.num_row_groups):
                if not columns:
                    count = content.metadata.row_group(group).num_rows
                    yield pa.table({"": pa.nulls(count)}).to_batches()[0]
                    continue
                yield from content.iter_batches(_ROWS, [group], columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise DecodeError(f"not a Parquet file: {reason(error)}", code="not-parquet") from error

    def file_writer(self, file: BinaryIO, schema: pa.Schema) -> FileWriter:
        return _Writer(file, schema, self.config)

    def infer_file(self, file: BinaryIO) -> pa.Schema | None:
        try:
            return portable(parquet.read_schema(file))
        except (pa.ArrowException, OSError):
            return None


class _Writer(FileWriter):
    """Collects rows, so that small batches do not make small row groups."""

    _ENOUGH = 64 << 20

    def __init__(self, file: BinaryIO, schema: pa.Schema, config: ParquetConfig) -> None:
        self.config = config
        self.schema = schema
        self.writer = parquet.ParquetWriter(file, schema, compression=config.compression)
        self.held: list[pa.RecordBatch] = []
        self.rows = self.size = 0

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        self.held.append(rows)
        self.rows += rows.num_rows
        self.size += rows.nbytes
        if self.rows >= self.config.row_group_rows or self.size >= self._ENOUGH:
            self._flush()
        return None

    def _flush(self) -> None:
        if self.held:
            table = pa.Table.from_batches(self.held, self.schema)
            self.writer.write_table(table, row_group_size=self.config.row_group_rows)
        self.held, self.rows, self.size = [], 0, 0

    def close(self) -> None:
        self._flush()
        self.writer.close()

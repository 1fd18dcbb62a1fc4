"""Avro object containers: a header with the schema, then blocks of data."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro.datum import codec as codec_of
from penstock.formats.avro.datum import undecodable
from penstock.sdk.columns.avro_types import arrow_schema
from penstock.sdk.encoding.buffered_reader import buffered_reader
from penstock.sdk.format import FileWriter
from penstock.sdk.record import Encoded

_SYNC = bytes(range(16))
_BLOCK = 1 << 20


def blocks(
    file: BinaryIO,
) -> Iterator[tuple[list[Any], int, pa.Schema, DecodeError | None]]:
    """Yields for each block the values before the first invalid value, the number of all values,
    the columns, and the error."""
    columns = pa.schema([])
    try:
        reader = fastavro.block_reader(buffered_reader(file))
        columns, codec = arrow_schema(reader.writer_schema), codec_of(reader.writer_schema)
        for block in reader:
            values: list[Any] = []
            stream = cast(Any, block).bytes_
            try:
                read = (fastavro.schemaless_reader(stream, codec) for _ in range(block.num_records))
                values.extend(read)
                yield values, block.num_records, columns, None
            except Exception as error:
                yield values, block.num_records, columns, undecodable(error)
    except PlanError as error:
        yield [], 0, columns, DecodeError(error.message, code=error.code)
    except Exception as error:
        yield [], 0, columns, undecodable(error)


def schema_of(payload: bytes) -> Any:
    """Returns the schema in a container's header. Raises errors of fastavro."""
    return fastavro.block_reader(io.BytesIO(payload)).writer_schema


def header(datum: Any, compression: str) -> bytes:
    """Returns the header of a container."""
    out = io.BytesIO()
    codec = "deflate" if compression == "deflate" else "null"
    fastavro.writer(out, datum, [], codec=codec, sync_marker=_SYNC)
    return out.getvalue()


def block(datums: Sequence[bytes], compression: str) -> bytes:
    """Returns encoded datums as a block."""
    data = b"".join(datums)
    if compression == "deflate":
        compressor = zlib.compressobj(wbits=-15)
        data = compressor.compress(data) + compressor.flush()
    return _encode_varint(len(datums)) + _encode_varint(len(data)) + data + _SYNC


class ContainerWriter(FileWriter):
    """A writer of blocks of about 1 MB. `encode` encodes rows as datums."""

    def __init__(
        self, file: BinaryIO, encode: Callable[[pa.RecordBatch], Encoded], datum: Any,
        compression: str,
    ) -> None:  # fmt: skip
        self._file, self._encode, self._compression = file, encode, compression
        self._datums: list[bytes] = []
        self._size = 0
        file.write(header(datum, compression))

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self._encode(rows)
        for datum in encoded.payloads.to_pylist():
            self._datums.append(datum)
            self._size += len(datum)
            if self._size >= _BLOCK:
                self._flush()
        return encoded if encoded.failures else None

    def _flush(self) -> None:
        if self._datums:
            self._file.write(block(self._datums, self._compression))
        self._datums, self._size = [], 0

    def close(self) -> None:
        self._flush()


def _encode_varint(value: int) -> bytes:
    """Encodes a number as a zigzag varint."""
    value <<= 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])

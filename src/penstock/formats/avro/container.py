"""Object containers: a header with the schema, then blocks of data."""

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
from penstock.sdk.format import FileWriter
from penstock.sdk.kit.avrotypes import arrow_schema
from penstock.sdk.kit.streams import buffered
from penstock.sdk.record import Encoded

_SYNC = bytes(range(16))
_BLOCK = 1 << 20


def blocks(
    file: BinaryIO,
) -> Iterator[tuple[list[Any], int, pa.Schema, DecodeError | None]]:
    """The values of each block up to the first bad one, the block's count, and what is wrong."""
    whole = pa.schema([])
    try:
        reader = fastavro.block_reader(buffered(file))
        whole, codec = arrow_schema(reader.writer_schema), codec_of(reader.writer_schema)
        for block in reader:
            values: list[Any] = []
            stream = cast(Any, block).bytes_
            try:
                read = (fastavro.schemaless_reader(stream, codec) for _ in range(block.num_records))
                values.extend(read)
                yield values, block.num_records, whole, None
            except Exception as error:
                yield values, block.num_records, whole, undecodable(error)
    except (PlanError, GeneratorExit):
        raise
    except Exception as error:
        yield [], 0, whole, undecodable(error)


def schema_of(payload: bytes) -> Any:
    """The schema in a container's header. Raises whatever fastavro does for what is none."""
    return fastavro.block_reader(io.BytesIO(payload)).writer_schema


def header(datum: Any, compression: str) -> bytes:
    """What a container of this schema begins with."""
    out = io.BytesIO()
    codec = "deflate" if compression == "deflate" else "null"
    fastavro.writer(out, datum, [], codec=codec, sync_marker=_SYNC)
    return out.getvalue()


def block(datums: Sequence[bytes], compression: str) -> bytes:
    """Encoded datums as a block."""
    data = b"".join(datums)
    if compression == "deflate":
        packer = zlib.compressobj(wbits=-15)
        data = packer.compress(data) + packer.flush()
    return _long(len(datums)) + _long(len(data)) + data + _SYNC


class ContainerWriter(FileWriter):
    """Blocks of about 1 MB of data; `encode` makes datums of rows."""

    def __init__(
        self, file: BinaryIO, encode: Callable[[pa.RecordBatch], Encoded], datum: Any,
        compression: str,
    ) -> None:  # fmt: skip
        self._file, self._encode, self._compression = file, encode, compression
        self._held: list[bytes] = []
        self._size = 0
        file.write(header(datum, compression))

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        encoded = self._encode(rows)
        for datum in encoded.payloads.to_pylist():
            self._held.append(datum)
            self._size += len(datum)
            if self._size >= _BLOCK:
                self._flush()
        return encoded if encoded.failures else None

    def _flush(self) -> None:
        if self._held:
            self._file.write(block(self._held, self._compression))
        self._held, self._size = [], 0

    def close(self) -> None:
        self._flush()


def _long(value: int) -> bytes:
    """A number as Avro writes it: zigzag, seven bits a byte."""
    value <<= 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])

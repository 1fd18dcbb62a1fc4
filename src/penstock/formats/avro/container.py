"""Avro object containers: a header with the schema, then blocks of data."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, cast

import fastavro
import pyarrow as pa

from penstock.core.errors import DecodeError, PlanError
from penstock.formats.avro.block_content import BoundedInput, CompressedBlock, Decompression
from penstock.formats.avro.datum import parse_schema, undecodable
from penstock.formats.avro.rows import RowReader, Value
from penstock.sdk.encoding.decompression import CHUNK_BYTES
from penstock.sdk.format import FileWriter
from penstock.sdk.record import Encoded

_SYNC = bytes(range(16))
_BLOCK = 1 << 20
_PART_VALUES = 10_000
_MAX_COUNT = 1 << 31


class Part(NamedTuple):
    """Values of a block: those before the first invalid value, with its error.

    `total` is the number of these values, and with an error that of the rest of the block. Without
    a `reader` the header is damaged, and there are no values.
    """

    values: list[Value]
    total: int
    reader: RowReader | None
    error: DecodeError | None


def read_container(
    file: BinaryIO, make_reader: Callable[[Any], RowReader], max_size: int | None = None
) -> Iterator[Part]:
    """Yields the values of a container, in parts of limited size.

    An invalid block does not affect later blocks if its length is valid. `make_reader` returns the
    reader of a schema. `max_size` limits the decompressed size of the container.
    """
    reader: RowReader | None = None
    try:
        content = BoundedInput(_chunks(file))
        stream = io.BufferedReader(content, _BLOCK)
        header = fastavro.block_reader(stream)
        content.bounded = False
        reader = make_reader(_writer_schema(header))
        decompression = Decompression(header.codec, max_size)
        sync = cast(Any, header)._header["sync"]
        while (count := _read_varint(stream)) is not None:
            block = CompressedBlock(stream, _read_length(stream))
            error = None
            for part in _read_values(decompression.open(block), count, reader, decompression):
                yield part
                error = part.error
            if not _skip_to_next(block, stream, sync, error):
                return
    except PlanError as error:
        yield Part([], 0, reader, DecodeError(error.message, code=error.code))
    except Exception as error:
        yield Part([], 0, reader, undecodable(error))


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_BLOCK):
        yield chunk


def _read_values(
    content: BoundedInput, count: int, reader: RowReader, decompression: Decompression
) -> Iterator[Part]:
    """Yields the values of a block."""
    stream = io.BufferedReader(content, CHUNK_BYTES)
    values: list[Value] = []
    done = before = 0
    try:
        if not 0 <= count <= _MAX_COUNT:
            count = 0
            raise DecodeError("the number of values of a block is invalid", code="not-avro")
        while done < count:
            content.begin_value()
            values.append(reader.read(stream))
            done += 1
            if len(values) == _PART_VALUES or content.size - before >= _BLOCK:
                decompression.check_count(done)
                yield Part(values, len(values), reader, None)
                values, before = [], content.size
        if stream.read(1):
            raise DecodeError("trailing bytes in a block", code="not-avro")
        yield Part(values, len(values), reader, None)
    except Exception as error:
        yield Part(values, len(values) + count - done, reader, undecodable(error))


def _skip_to_next(
    block: CompressedBlock, stream: BinaryIO, sync: bytes, error: DecodeError | None
) -> bool:
    """Skips the rest of a block. Returns whether the container can be read further.

    Raises EOFError, and DecodeError for another marker, unless the block has an error.
    """
    if error is not None and error.code == "compression-ratio":
        return False
    try:
        block.skip()
        if stream.read(len(sync)) == sync:
            return True
    except EOFError:
        if error is None:
            raise
    if error is None:
        raise DecodeError("the marker after a block is not that of the file", code="not-avro")
    return False


def container_schema(file: BinaryIO) -> Any:
    """Returns the schema in a container's header. Raises errors of fastavro, and DecodeError."""
    stream = io.BufferedReader(BoundedInput(_chunks(file)), _BLOCK)
    return _writer_schema(fastavro.block_reader(stream))


def _writer_schema(header: Any) -> Any:
    """Returns the parsed schema of a header, whose JSON may be the name of a type."""
    schema = header.writer_schema
    return parse_schema({"type": schema} if isinstance(schema, str) else schema)


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


def _read_varint(stream: BinaryIO) -> int | None:
    """Reads a zigzag varint; None at the end of the stream. Raises EOFError, DecodeError."""
    value = 0
    for index in range(10):
        byte = stream.read(1)
        if not byte:
            if index:
                raise EOFError
            return None
        value |= (byte[0] & 0x7F) << (7 * index)
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    raise DecodeError("a number of more than ten bytes", code="not-avro")


def _read_length(stream: BinaryIO) -> int:
    length = _read_varint(stream)
    if length is None:
        raise EOFError
    if length < 0:
        raise DecodeError("the length of a block is negative", code="not-avro")
    return length

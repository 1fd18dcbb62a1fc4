"""Two small formats, so that these tests are about files and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from penstock.sdk import Config, DecodeError, Encoded, EncodeError, Failure, FileFormat, FileWriter
from penstock.sdk.columns.rows import batch_of, infer_rows

ROWS_A_BLOCK = 3


class Lines(FileFormat[Config]):
    """JSON lines; a line that is not JSON is a bad record."""

    extension = "jsonl"
    position = "line"
    concatenable = True
    lines = True

    def read_file(self, file: BinaryIO, schema: Any, origin: str, read: Any) -> Iterator[Any]:
        rows: list[Any] = []
        at: list[int] = []
        for number, line in enumerate(file, 1):
            try:
                rows.append(dict(json.loads(line).items()))
                at.append(number)
            except (ValueError, AttributeError):
                read.reject(line.rstrip(b"\n"), origin, number, DecodeError("not JSON"))
            if len(rows) == ROWS_A_BLOCK:
                yield batch_of(rows, schema), pa.array(at, pa.int64())
                rows, at = [], []
        yield batch_of(rows, schema), pa.array(at, pa.int64())

    def file_writer(self, file: BinaryIO, schema: Any) -> FileWriter:
        return LinesWriter(file)

    def infer_file(self, file: BinaryIO) -> Any:
        return infer_rows([json.loads(line) for line in file])


class LinesWriter(FileWriter):
    """Refuses rows whose column `v` is "bad"."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, rows: pa.RecordBatch) -> Encoded | None:
        failures = []
        for index, row in enumerate(rows.to_pylist()):
            if row.get("v") == "bad":
                failures.append(Failure(index, EncodeError("bad")))
            else:
                self.file.write(json.dumps(row).encode() + b"\n")
        return Encoded(pa.array([], pa.binary()), None, failures) if failures else None

    def close(self) -> None:
        pass


class Blocks(FileFormat[Config]):
    """Arrow's stream format: files of it cannot be joined, and it compresses by itself."""

    extension = "blocks"
    needs_seek = False

    def read_file(self, file: BinaryIO, schema: Any, origin: str, read: Any) -> Iterator[Any]:
        at = 0
        for batch in pa.ipc.open_stream(file):
            yield batch.select(schema.names), pa.array(range(at + 1, at + 1 + len(batch)))
            at += len(batch)

    def file_writer(self, file: BinaryIO, schema: Any) -> FileWriter:
        return BlocksWriter(file, schema)

    def infer_file(self, file: BinaryIO) -> Any:
        return pa.ipc.open_stream(file).schema


class BlocksWriter(FileWriter):
    def __init__(self, file: BinaryIO, schema: Any) -> None:
        self.stream = pa.ipc.new_stream(file, schema)

    def write(self, rows: pa.RecordBatch) -> None:
        self.stream.write_batch(rows)

    def close(self) -> None:
        self.stream.close()

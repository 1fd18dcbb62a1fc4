"""Files in object stores, read and written by hand."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.files import FilesSink, FilesSource
from penstock.connectors.files.filesystem import open_storage
from penstock.sdk import BatchId, Context, Read

ID = pa.schema([pa.field("id", pa.int64())])
ROW = b'{"id": 1}\n'


def make_source(bucket: Any, lines: Any, name: str = "in", **options: Any) -> FilesSource:
    """Returns a source of the lines below a name in a bucket."""
    given = {"path": f"{bucket.url}/{name}", "storage": bucket.server.storage, **options}
    made = FilesSource(FilesSource.config_type.model_validate(given), Context("p", "n"))
    made.format, made.columns = lines, ID
    return made


def make_sink(bucket: Any, lines: Any, **options: Any) -> FilesSink:
    """Returns a sink to `out` in a bucket."""
    given = {"path": f"{bucket.url}/out", "storage": bucket.server.storage, **options}
    made = FilesSink(FilesSink.config_type.model_validate(given), Context("p", "n"))
    made.format = lines
    return made


def ids(source: FilesSource) -> list[int]:
    """Returns the IDs of all rows, and commits them."""
    start = source.initial_offset()
    end = source.latest_offset(start)
    batches = [b for p in source.partitions(start, end) for b in source.read(p, Read())]
    source.commit(end)
    return [row["id"] for batch in batches for row in batch.to_pylist()]


def write(sink: FilesSink, number: int, rows: list[dict[str, Any]], schema: pa.Schema = ID) -> None:
    """Writes and commits a batch."""
    batch = BatchId("q", number)
    writer = sink.writer(None, batch, 0, schema)
    writer.write(pa.RecordBatch.from_pylist(rows, schema))
    sink.commit(batch, [json.loads(json.dumps(writer.commit()))])


class Ended(Exception):
    """The end of a process, which the tests make up."""


def stop_and_continue(make: Callable[[], FilesSink], at: int) -> None:
    """Writes two batches by a process that ends before its change `at`, and by the next one."""
    first = make()
    storage, _ = open_storage(first.config.path, first.config.storage)
    first.storage = ending(storage, at)
    with suppress(Ended):
        _write_batches(first)
        return
    _write_batches(make())


def ending(storage: Any, at: int) -> Any:
    """Returns a copy of a storage that raises `Ended` before the change number `at`."""
    changes = iter(range(100))
    type_: Any = type(storage)

    class Fused(type_):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            if (
                name in ("create", "close_durably", "replace", "move", "delete")
                and next(changes) == at
            ):
                raise Ended
            return super().__getattribute__(name)

    fused = copy.copy(storage)
    fused.__class__ = Fused
    return fused


def _write_batches(sink: FilesSink) -> None:
    sink.recover()
    for number in range(2):
        write(sink, number, [{"id": number + 1}])

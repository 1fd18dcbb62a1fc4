"""Chunks of a journal: consecutive records, as readers on this and on other machines receive them.

```
chunk   first:u64  Arrow stream          (little endian)
```

`first` is the position of the first record. A chunk is complete: it has the columns, too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

Chunk = bytes | bytearray
ReadChunks = Callable[[Path, int, int], Iterator[Chunk]]
"""A function that reads the chunks with the records of the journal in a directory in a range."""
_FIRST = struct.Struct("<Q")


def chunk_head(first: int, columns: bytes) -> bytes:
    """Returns the bytes before the record batches of a chunk. `columns` is a serialized schema."""
    return _FIRST.pack(first) + columns


def decode_chunk(chunk: Chunk, start: int, end: int) -> tuple[int, pa.RecordBatch]:
    """Returns the records of a chunk from `start` to before `end`, and the position of the first.

    They are one batch: to convert a batch takes as long as to convert hundreds of records.
    """
    (first,) = _FIRST.unpack_from(chunk)
    batches = list(pa.ipc.open_stream(pa.py_buffer(chunk).slice(_FIRST.size)))
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    offset, stop = max(start - first, 0), min(end - first, batch.num_rows)
    return first + offset, batch.slice(offset, stop - offset)

"""The journal of a transaction: its statements and rows, which can be executed again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import Any

import pyarrow as pa

_IN_MEMORY = 32 * 2**20


@dataclass
class Journal:
    """Statements with their parameters or rows. Rows beyond 32 MiB are in a temporary file."""

    _entries: list[tuple[str, Sequence[Any], tuple[int, int] | None]] = field(default_factory=list)
    _file: Any = None

    def add(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Adds a statement."""
        self._entries.append((statement, parameters, None))

    def add_rows(self, statement: str, rows: pa.RecordBatch) -> None:
        """Adds a statement that reads rows."""
        if self._file is None:
            self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        start = self._file.seek(0, 2)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, rows.schema) as writer:
            writer.write_batch(rows)
        data = stream.getvalue()
        self._file.write(data)
        self._entries.append((statement, (), (start, len(data))))

    def __iter__(self) -> Iterator[tuple[str, Sequence[Any], pa.RecordBatch | None]]:
        for statement, parameters, place in self._entries:
            yield statement, parameters, None if place is None else self._rows(*place)

    def _rows(self, start: int, size: int) -> pa.RecordBatch:
        self._file.seek(start)
        with pa.ipc.open_stream(self._file.read(size)) as stream:
            return stream.read_next_batch()

    def close(self) -> None:
        """Removes the temporary file."""
        if self._file is not None:
            self._file.close()

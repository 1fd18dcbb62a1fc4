"""Rows that a transform carries over to the next batch, as a file for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.core.files.durable import create_directory_durably, rename_durably
from penstock.core.files.private_files import open_private

DIRECTORY = "carried"
"""The directory of carried rows in the checkpoint of a query."""


@dataclass(frozen=True)
class CarriedRows:
    """The rows before and after a batch, in a directory.

    A repeated batch has the rows before its first attempt. With `is_fixed` the batch is computed
    again from a part of its rows, and the rows after it stay as they are.
    """

    directory: Path
    batch: int
    is_fixed: bool = False

    def add_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows before the batch, followed by the batch, in the columns of the batch."""
        before = self._before()
        if not before:
            return batch
        with pa.ipc.open_file(self.directory / str(before[-1])) as file:
            carried = file.read_all()
        table = pa.concat_tables(
            [pa.Table.from_batches([batch]).slice(0, 0), carried, pa.Table.from_batches([batch])],
            promote_options="permissive",
        )
        rows = table.select(batch.schema.names).cast(batch.schema).combine_chunks()
        joined: pa.RecordBatch = rows.to_batches()[0]
        return joined

    def save(self, rows: pa.RecordBatch, indexes: Sequence[int]) -> None:
        """Stores the rows at `indexes` as those after the batch, durably."""
        if self.is_fixed:
            return
        create_directory_durably(self.directory)
        hidden = self.directory / f".{self.batch}"
        with open_private(hidden, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_batch(rows.take(pa.array(indexes, pa.int64())))
        rename_durably(hidden, self.directory / str(self.batch))
        for number in self._before()[:-1]:
            (self.directory / str(number)).unlink(missing_ok=True)

    def _before(self) -> list[int]:
        """Returns the earlier batches that have stored rows, in order."""
        names = [file.name for file in self.directory.glob("[0-9]*")]
        return sorted(number for number in map(int, names) if number < self.batch)

"""What python.yaml calls."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def rounded(batch: pa.RecordBatch) -> pa.RecordBatch:
    place = batch.schema.get_field_index("celsius")
    return batch.set_column(place, "celsius", pc.round(batch.column("celsius"), 1))


class Opened:
    def __init__(self, label: str) -> None:
        self._label = label
        self._open: str | None = None

    def open(self) -> None:
        self._open = self._label

    def transform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        opened = pa.array([self._open] * batch.num_rows, pa.string())
        return batch.select(["sensor"]).append_column("opened", opened)

    def close(self) -> None:
        self._open = None

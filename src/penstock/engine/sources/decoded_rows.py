"""Rows of a source with the payloads from which they were decoded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.engine.tasks.dead_letter_writer import DeadLetterWriter
from penstock.sdk.columns.row_json import row_payload
from penstock.sdk.record import PAYLOAD


@dataclass
class DecodedRows:
    """Rows of a batch. Row `i` is of payload `index[i]`, or of payload `i` without an index.

    A source that decodes by itself has no payloads: a dead letter holds the row as JSON.
    """

    rows: pa.RecordBatch
    payloads: pa.RecordBatch | None = None
    index: pa.Array | None = None

    @property
    def origins(self) -> pa.Array | None:
        """The origin of each row; None without payloads."""
        if self.payloads is None:
            return None
        origins = self.payloads.column("origin")
        return origins if self.index is None else origins.take(self.index)

    def reject(self, errors: Mapping[int, RecordError], dead_letters: DeadLetterWriter) -> None:
        """Keeps the rows without errors, and adds the others to `dead_letters`."""
        if not errors:
            return
        for number, error in errors.items():
            self._add(number, error, dead_letters)
        count = self.rows.num_rows
        valid = mask_without(count, errors)
        if self.payloads is not None:
            index = pa.array(range(count), pa.int64()) if self.index is None else self.index
            self.index = index.filter(valid)
        self.rows = self.rows.filter(valid)

    def _add(self, number: int, error: RecordError, dead_letters: DeadLetterWriter) -> None:
        if self.payloads is None:
            dead_letters.add(row_payload(self.rows, number), error)
            return
        index = number if self.index is None else self.index[number].as_py()
        payload, origin, position = (
            self.payloads.column(name)[index].as_py() for name in PAYLOAD.names
        )
        dead_letters.add(payload, error, origin, position, None if self.index is None else number)


def mask_without(count: int, bad: Iterable[int]) -> pa.Array:
    """Returns a mask of the rows without the bad ones."""
    valid = np.ones(count, bool)
    valid[list(bad)] = False
    return pa.array(valid)

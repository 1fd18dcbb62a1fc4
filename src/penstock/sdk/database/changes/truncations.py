"""The truncations of a table in its journal: records without a row, and their positions in a file.

A batch ends before a truncation, so that the rows of a batch are either before or after it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import StateError
from penstock.core.files.durable import replace_durably
from penstock.journal import JournalReader

OnTruncate = Literal["fail", "ignore", "apply"]
TRUNCATION = b"truncated"
"""The payload of the record of a truncation in the journal. No other payload is equal."""
_NAME = "truncations"


def read_truncations(directory: Path) -> list[int]:
    """Returns the positions of the truncations in a journal, in their order."""
    try:
        return list(json.loads((directory / _NAME).read_text("ascii")))
    except FileNotFoundError:
        return []


def is_truncation(record: pa.RecordBatch) -> bool:
    """Returns whether the only record of a batch of the journal is a truncation."""
    (payload,) = record.column("payload").to_pylist()
    return bool(payload == TRUNCATION)


def without_truncations(messages: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """Returns the messages that are not truncations, of a batch that begins at `start`.

    Raises StateError for a truncation within the batch: its position was lost.
    """
    found = pc.equal(messages.column("payload"), TRUNCATION)
    if not found.true_count:
        return messages
    *_, last = messages.column("position").filter(found).to_pylist()
    if last != start:
        raise StateError(
            f"the journal has a truncation at record {last}, where no batch begins",
            code="corrupt-state",
            hint="Restore all files of the state from one backup, or reset the state with --fresh.",
        )
    return messages.filter(pc.invert(found))


class TruncationWriter:
    """The positions of truncations, as the receiver of a table adds them, and its option.

    Positions after the end of the journal are removed: a power failure can lose records.
    """

    def __init__(self, directory: Path, action: OnTruncate) -> None:
        self.action = action
        self._directory, self._journal = directory, JournalReader(directory)
        self._positions = read_truncations(directory)
        self._store(self._journal.end())

    def add(self, position: int) -> None:
        """Stores the position of a truncation durably, before its record is in the journal."""
        self._store(position, position)

    def _store(self, end: int, *added: int) -> None:
        """Stores the known positions before `end` whose records remain, and further ones."""
        begin = self._journal.begin()
        kept = [*(each for each in self._positions if begin <= each < end), *added]
        if kept != self._positions:
            replace_durably(self._directory / _NAME, json.dumps(kept))
            self._positions = kept

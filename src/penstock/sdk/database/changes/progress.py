"""The progress of a receiver, which each record of the journal has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from penstock.core.files.durable import replace_durably
from penstock.journal import JournalReader
from penstock.sdk.database.changes.rows import Key, key_of_text

PROGRESS = pa.schema([("commit", pa.int64()), ("number", pa.int64()), ("chunk", pa.string())])
"""The columns of the journal for the fields of `Progress`."""
DONE = "done"


class Progress(NamedTuple):
    """The last change and the last chunk in a journal.

    `commit` is the position of the transaction of the last change, and `number` its place in the
    transaction. `chunk` is the last key of the snapshot as JSON, empty before the first chunk, or
    DONE.
    """

    commit: int = 0
    number: int = 0
    chunk: str = ""

    @classmethod
    def read(cls, reader: JournalReader) -> Progress | None:
        """Returns the progress of the last record; None for an empty journal."""
        end = reader.end()
        if end == 0:
            return None
        for _, batch in reader.read(end - 1, end):
            return cls(*batch.select(PROGRESS.names).to_pylist()[-1].values())
        return None

    @property
    def after(self) -> Key | None:
        """The last key of the snapshot; None before the first chunk."""
        return key_of_text(self.chunk) if self.chunk not in ("", DONE) else None

    def includes(self, commit: int, number: int) -> bool:
        """Returns whether the journal has a change."""
        return (commit, number) <= (self.commit, self.number)


class Confirmed:
    """The position up to which all changes are in the journal, in a file beside it.

    It is stored before it is sent to the server. `log` identifies the log of the position, if
    positions of several logs may be equal. The first `records` of the journal have no change after
    the position; 0 if their number is not known.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "confirmed"
        stored = json.loads(self._path.read_text()) if self._path.exists() else 0
        position, log, records = (*stored, 0)[:3] if isinstance(stored, list) else (stored, "", 0)
        self.position, self.log, self.records = int(position), str(log), int(records)

    def raise_to(self, position: int, log: str = "", records: int = 0) -> None:
        """Stores a later position, or the same one with more records, durably."""
        if (position, records) > (self.position, self.records):
            self.reset(position, log, records)

    def reset(self, position: int = 0, log: str = "", records: int = 0) -> None:
        """Stores another position durably, by default none."""
        stored = [position, log, records] if log else position
        replace_durably(self._path, json.dumps(stored))
        self.position, self.log, self.records = position, log, records

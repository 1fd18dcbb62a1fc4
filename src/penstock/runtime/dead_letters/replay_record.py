"""Results of replays, and the record of an unfinished replay in the state directory.

The record is written before the first sink and removed after the dead letters. After a crash the
next replay finishes the same batch, so that sinks with exactly-once delivery skip it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.files import writing

FILE = "replay.json"


@dataclass(frozen=True)
class SkippedNode:
    """The skipped dead letters of a node."""

    node: str
    count: int
    reason: str


@dataclass
class ReplayResult:
    """Numbers of dead letters by outcome.

    The rows of `replayed` dead letters are in all sinks downstream, and the dead letters are
    removed. So are those of `finished` dead letters, which belong to an earlier replay that was
    interrupted. `failed` dead letters failed again and remain, with one more attempt. `skipped`
    dead letters were not attempted.
    """

    replayed: int = 0
    finished: int = 0
    failed: int = 0
    skipped: list[SkippedNode] = field(default_factory=list)


@dataclass(frozen=True)
class ReplayRecord:
    """A replay of the dead letters `ids` in the batch `name`.

    `written` is set once all sinks have the rows, before the dead letters are removed.
    """

    name: str
    ids: frozenset[str]
    written: bool = False

    @classmethod
    def create(cls, state: StateDirectory, ids: Iterable[str]) -> ReplayRecord:
        """Writes the record of a new replay. The name is unique in all lives of the state."""
        unique = frozenset(ids)
        identity = hashlib.sha1("".join([state.life(), *sorted(unique)]).encode())
        record = cls(f"replay-{identity.hexdigest()[:12]}", unique)
        record._save(state)
        return record

    @classmethod
    def read(cls, state: StateDirectory) -> ReplayRecord | None:
        """Returns the record of an unfinished replay, or None."""
        entry = state.read(FILE)
        if entry is None:
            return None
        return cls(entry["name"], frozenset(entry["ids"]), entry["written"])

    def mark_written(self, state: StateDirectory) -> None:
        """Records that all sinks have the rows."""
        ReplayRecord(self.name, self.ids, written=True)._save(state)

    def remove(self, state: StateDirectory) -> None:
        """Removes the record of a finished replay."""
        with writing(state.root / FILE):
            (state.root / FILE).unlink(missing_ok=True)

    def _save(self, state: StateDirectory) -> None:
        entry = {"name": self.name, "ids": sorted(self.ids), "written": self.written}
        state.write(FILE, entry)
        state.storage.sync(state.root)

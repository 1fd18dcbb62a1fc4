"""Starts of the writers of a journal: which writer has appended a record.

A file has a line `POSITION ID` for each start: the position of the first record of the writer, and
a random ID. Two journals that were continued from the same backup differ in these IDs, although
their records have the same positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from penstock.core.files.durable import replace_durably

_NAME = "starts"


class Start(NamedTuple):
    """The start of a writer."""

    position: int
    id: str


def add_start(directory: Path, position: int, begin: int) -> None:
    """Adds a start durably. `begin` is the position of the oldest record of the journal."""
    starts = [start for start in _starts(directory) if start.position < position]
    removed = [start for start in starts if start.position <= begin][:-1]
    starts = [*starts[len(removed) :], Start(position, uuid4().hex[:16])]
    lines = [f"{start.position} {start.id}\n" for start in starts]
    replace_durably(directory / _NAME, "".join(lines))


def writer_of(directory: Path, position: int) -> str | None:
    """Returns the ID of the start that appended the record before a position, if it is known."""
    ids = [start.id for start in _starts(directory) if start.position < position]
    return ids[-1] if ids else None


def _starts(directory: Path) -> list[Start]:
    try:
        text = (directory / _NAME).read_text("ascii")
    except FileNotFoundError:
        return []
    starts = []
    for line in text.splitlines():
        position, _, id_ = line.partition(" ")
        starts.append(Start(int(position), id_))
    return starts

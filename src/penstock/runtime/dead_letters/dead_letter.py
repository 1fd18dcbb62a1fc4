"""A dead letter of the state directory."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row of `DEAD_LETTER` in `engine/tasks/dead_letter_writer.py`, with the same fields."""

    id: str
    pipeline: str
    node: str
    stage: str
    code: str
    message: str
    payload: bytes | None
    origin: str | None
    position: int | None
    attempt: int
    time: dt.datetime
    query: str | None
    batch: int | None
    header: bytes | None
    definition: str | None

    def to_json(self) -> dict[str, Any]:
        """Returns the dead letter for JSON, with the payload as text, or in hex if it is not UTF-8.

        `definition` is not included: it identifies a node for a replay only.
        """
        facts = asdict(self)
        del facts["definition"]
        text = _text(self.payload)
        hex_ = self.payload.hex() if self.payload is not None and text is None else None
        return {**facts, "payload": text, "payload_hex": hex_, "header": _text(self.header)}


def read_rows(dead_letters: pa.Table) -> list[DeadLetter]:
    """Returns the dead letters in the rows of a table (schema `DEAD_LETTER`)."""
    return [DeadLetter(**row) for row in dead_letters.to_pylist()]


def _text(content: bytes | None) -> str | None:
    try:
        return content.decode() if content is not None else None
    except UnicodeDecodeError:
        return None

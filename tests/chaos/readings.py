"""Readings, some of them bad, and all that must come of them, reckoned in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=200)
JITTER = timedelta(seconds=20)
WINDOW = timedelta(minutes=1)
KINDS = ("air", "soil", "water")

PIPELINE = """\
name: readings
sources:
  readings:
    {source}
    schema: id LONG, at TIMESTAMP, kind STRING, parts INT, whole INT, note STRING
    watermark: {{column: at, delay: {delay}}}
transforms:
  shares:
    type: sql
    sql: SELECT id, at, kind, 100 * parts DIV whole AS share FROM readings
  checked:
    type: python
    from: shares
    deterministic: true
    code: |
      import pyarrow.compute as pc

      def transform(batch):
          if pc.any(pc.greater(batch.column("share"), 100)).as_py():
              raise ValueError("a share of more than a whole")
          return batch
  notes:
    type: sql
    sql: SELECT concat(id, ' ', note) AS text FROM readings WHERE note IS NOT NULL
  minutes:
    type: sql
    sql: |
      SELECT window.start AS minute, kind, count(*) AS readings, sum(parts) AS parts
      FROM readings GROUP BY window(at, '1 minute'), kind
sinks:
  share_sink: {{from: checked, {shares}}}
  note_sink: {{from: notes, {notes}}}
  minute_sink: {{from: minutes, {minutes}}}
runtime:
  master: local[2]
  state: state
  restart: {{attempts: 20, backoff: 500ms, max_backoff: 3s}}
"""

Letter = tuple[str, str, str]
"""A dead letter's node, error code, and record: its place in the input, or its id."""


class Unwritable(NamedTuple):
    """A note that a sink rejects, and the code of its dead letter."""

    note: str
    code: str


@dataclass
class Expected:
    """What comes of readings when nothing is lost or repeated."""

    shares: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    minutes: dict[tuple[datetime, str], tuple[int, int]] = field(default_factory=dict)
    dead_letters: Counter[Letter] = field(default_factory=Counter)
    payloads: dict[str, bytes] = field(default_factory=dict)
    """Of undecodable readings, by place."""


def make_readings(
    count: int, seed: int, failing: int, place: Callable[[int], str], unwritable: Unwritable
) -> tuple[list[bytes], Expected]:
    """Readings in the order of their ids, which are their numbers, and what comes of them.

    About one in 200 is bad; on `failing` of them SQL fails. `place` is where a reading will stand.
    """
    dice = random.Random(seed)
    expected = Expected()
    chosen = set(dice.sample(range(count), failing))
    readings = [
        _reading(dice, number, place(number), number in chosen, unwritable, expected)
        for number in range(count)
    ]
    return readings, expected


def closing_readings(first: int, count: int, expected: Expected) -> list[bytes]:
    """So late that one in each partition closes the windows of all others; their own stay open."""
    at = START + first * STEP + timedelta(days=1)
    readings = []
    for id_ in range(first, first + count):
        expected.shares[share_text(id_, at, KINDS[0], 100)] += 1
        row = {"id": id_, "at": at.isoformat(), "kind": KINDS[0], "parts": 1, "whole": 1}
        readings.append(json.dumps(row).encode())
    return readings


def share_text(id_: int, at: datetime, kind: str, share: int) -> str:
    """A row of the sink of shares, as one text."""
    return f"{id_} {at.isoformat(timespec='milliseconds')} {kind} {share}"


def _reading(
    dice: random.Random,
    id_: int,
    place: str,
    failing: bool,
    unwritable: Unwritable,
    expected: Expected,
) -> bytes:
    """One reading, with its consequences."""
    at = START + id_ * STEP - dice.random() * JITTER
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    kind, whole = dice.choice(KINDS), dice.randint(10, 90)
    parts = dice.randint(0, whole)
    note = f"note {dice.randint(0, 9)} 🌧" if dice.random() < 0.05 else None
    chance = dice.random()
    if not failing and chance < 0.002:
        return _undecodable(dice, id_, place, expected)
    if failing:
        whole = 0
        expected.dead_letters["shares", "divide-by-zero", str(id_)] += 1
    elif chance < 0.0035:
        parts = 3 * whole
        expected.dead_letters["checked", "rejected", str(id_)] += 1
    else:
        expected.shares[share_text(id_, at, kind, 100 * parts // whole)] += 1
    if not failing and 0.0035 <= chance < 0.005:
        note = unwritable.note
        expected.dead_letters["note_sink", unwritable.code, str(id_)] += 1
    elif note is not None:
        expected.notes[f"{id_} {note}"] += 1
    minute = START + (at - START) // WINDOW * WINDOW
    readings, total = expected.minutes.get((minute, kind), (0, 0))
    expected.minutes[minute, kind] = readings + 1, total + parts
    row = {"id": id_, "at": at.isoformat(), "kind": kind, "parts": parts, "whole": whole}
    return json.dumps({**row, "note": note}, ensure_ascii=False).encode()


def _undecodable(dice: random.Random, id_: int, place: str, expected: Expected) -> bytes:
    code, line = dice.choice(
        [
            ("not-json", b'{"id": %d, "kind": "so' % id_),
            ("wrong-type", b'{"id": %d, "parts": "many"}' % id_),
            ("not-utf8", b'{"id": %d, "kind": "\xff\xfe"}' % id_),
        ]
    )
    expected.dead_letters["readings", code, place] += 1
    expected.payloads[place] = line
    return line

"""Files of readings, some of them bad, and all that must come of them, reckoned in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from penstock.runtime.dead_letters import DeadLetters

START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(milliseconds=200)
JITTER = timedelta(seconds=20)
WINDOW = timedelta(minutes=1)
FILES = 40
KINDS = ("air", "soil", "water")

PIPELINE = """\
name: readings
sources:
  readings:
    type: files
    path: in/*.jsonl
    order: name
    max_files: {max_files}
    schema: id LONG, at TIMESTAMP, kind STRING, parts INT, whole INT, note STRING
    watermark: {{column: at, delay: 1 minute}}
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
  share_files: {{type: files, from: checked, path: out/shares, format: json}}
  note_files: {{type: files, from: notes, path: out/notes, format: text}}
  minute_files: {{type: files, from: minutes, path: out/minutes, format: parquet}}
runtime:
  master: local[2]
  state: state
"""

Letter = tuple[str, str, str]
"""A dead letter's node, error code, and record: its file and line, or its id."""


@dataclass
class Expected:
    """What is in the sinks and the dead letters of a run that has lost and repeated nothing."""

    shares: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    minutes: dict[tuple[datetime, str], tuple[int, int]] = field(default_factory=dict)
    letters: Counter[Letter] = field(default_factory=Counter)
    payloads: dict[str, bytes] = field(default_factory=dict)
    """Of undecodable lines, by file and line."""


def write_readings(
    directory: Path, count: int, seed: int, *, failing: int, max_files: int
) -> Expected:
    """A pipeline in a directory, with its input, of which a batch takes `max_files`.

    About one reading in 200 is bad; on `failing` of them SQL fails.
    """
    dice = random.Random(seed)
    expected = Expected()
    (directory / "in").mkdir(parents=True)
    (directory / "pipeline.yaml").write_text(PIPELINE.format(max_files=max_files))
    per_file = count // FILES
    chosen = set(dice.sample(range(per_file * FILES), failing))
    for number in range(FILES):
        path = directory / "in" / f"{number:03}.jsonl"
        lines = []
        for line in range(1, per_file + 1):
            identity = number * per_file + line - 1
            place = f"{path}:{line}"
            lines.append(_line(dice, identity, place, identity in chosen, expected))
        path.write_bytes(b"\n".join(lines) + b"\n")
    return expected


def _line(dice: random.Random, id_: int, place: str, failing: bool, expected: Expected) -> bytes:
    """One reading as a line, with its consequences."""
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
        expected.letters["shares", "divide-by-zero", str(id_)] += 1
    elif chance < 0.0035:
        parts = 3 * whole
        expected.letters["checked", "rejected", str(id_)] += 1
    else:
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        expected.shares[f"{id_} {stamp} {kind} {100 * parts // whole}"] += 1
    if not failing and 0.0035 <= chance < 0.005:
        note = "two\nlines"
        expected.letters["note_files", "several-lines", str(id_)] += 1
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
    expected.letters["readings", code, place] += 1
    expected.payloads[place] = line
    return line


def compare(directory: Path, expected: Expected) -> None:
    """Raises AssertionError unless everything is there, once, and nothing is left over."""
    assert_equal("shares", Counter(_shares(directory)), expected.shares)
    notes = (line for path in (directory / "out/notes").glob("[!.]*") for line in _lines(path))
    assert_equal("notes", Counter(notes), expected.notes)
    table = pq.ParquetDataset(directory / "out/minutes").read().to_pylist()
    minutes = Counter((r["minute"], r["kind"], r["readings"], r["parts"]) for r in table)
    assert_equal("minutes", minutes, Counter((*k, *v) for k, v in expected.minutes.items()))
    state = directory / "state" / "readings"
    letters = DeadLetters(state / "dead_letters").read().to_pylist()
    found = Counter((each["node"], each["code"], _record(each)) for each in letters)
    assert_equal("dead letters", found, expected.letters)
    decoded = {_record(each): each["payload"] for each in letters if each["stage"] == "decode"}
    assert decoded == expected.payloads
    assert not [path for path in (state / "spool").rglob("*") if path.is_file()], "a spool is left"
    drafts = list((directory / "out").rglob("*.tmp"))
    assert not drafts, f"drafts are left: {drafts}"


def assert_equal(what: str, found: Counter, expected: Counter) -> None:
    """Raises AssertionError that says what is lost and what is too many."""
    lost, extra = expected - found, found - expected
    told = f"{what}: lost {sorted(lost)[:5]}, too many {sorted(extra)[:5]}"
    assert not lost and not extra, f"{told} ({lost.total()} and {extra.total()})"


def _shares(directory: Path) -> Iterator[str]:
    for path in (directory / "out/shares").glob("[!.]*"):
        for line in _lines(path):
            row = json.loads(line)
            at = datetime.fromisoformat(row["at"]).isoformat(timespec="milliseconds")
            yield f"{row['id']} {at.replace('+00:00', 'Z')} {row['kind']} {row['share']}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _record(letter: dict) -> str:
    if letter["stage"] == "decode":
        return f"{letter['origin']}:{letter['position']}"
    row = json.loads(letter["payload"])
    return str(row["id"] if "id" in row else row["text"].split()[0])

"""Counting what a run has left: what is lost, what is there twice, what should not be there."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from places import Input, Output, Row
from readings import Expected, share_text

from penstock.runtime.dead_letters.store import DeadLetters


@dataclass
class Tally:
    """What was found of one kind of thing, beside what was expected."""

    what: str
    found: Counter[Any]
    expected: Counter[Any]

    @property
    def lost(self) -> Counter[Any]:
        """What is not there."""
        return self.expected - self.found

    @property
    def repeated(self) -> Counter[Any]:
        """What is there more often than it should be."""
        return Counter({each: n for each, n in self._extra.items() if each in self.expected})

    @property
    def strange(self) -> Counter[Any]:
        """The rows that are not expected."""
        return self._extra - self.repeated

    @property
    def _extra(self) -> Counter[Any]:
        return self.found - self.expected

    def counts(self) -> tuple[str, ...]:
        """A line of a table: expected, found, lost, repeated."""
        numbers = (self.expected, self.found, self.lost, self.repeated)
        return (self.what, *(f"{each.total():,}" for each in numbers))

    def judge(self, repeats: bool) -> None:
        """Raises AssertionError with the lost, strange and repeated rows."""
        wrong = {"lost": self.lost, "strange": self.strange}
        if not repeats:
            wrong["repeated"] = self.repeated
        problems = [f"{n.total()} {how}: {sorted(n)[:5]}" for how, n in wrong.items() if n]
        assert not problems, f"{self.what}: {'; '.join(problems)}"


def tallies(directory: Path, output: Output, expected: Expected) -> list[Tally]:
    """All that a run was to leave."""
    dead_letters = _dead_letters(directory)
    minutes = Counter({(*key, *value): 1 for key, value in expected.minutes.items()})
    payloads = Counter(expected.payloads.items())
    decoded = Counter(
        (_record(each), each["payload"]) for each in dead_letters if each["stage"] == "decode"
    )
    found = Counter((each["node"], each["code"], _record(each)) for each in dead_letters)
    return [
        Tally("shares", Counter(_share(row) for row in output.rows("shares")), expected.shares),
        Tally("notes", Counter(row.content for row in output.rows("notes")), expected.notes),
        Tally("minutes", Counter(_minute(row) for row in output.rows("minutes")), minutes),
        Tally("dead letters", found, expected.dead_letters),
        Tally("undecodable payloads", decoded, payloads),
    ]


def assert_tidy(directory: Path) -> None:
    """Raises AssertionError if drafts or spools are left over."""
    spool = directory / "state" / "readings" / "spool"
    assert not [path for path in spool.rglob("*") if path.is_file()], "a spool is left"
    drafts = list((directory / "out").rglob("*.tmp"))
    assert not drafts, f"drafts are left: {drafts}"


def assert_in_order(output: Output, source: Input) -> None:
    """Raises AssertionError if records of one key and part of the input have changed places.

    A record that is there again counts where it came first.
    """
    seen: set[int] = set()
    last: dict[tuple[int, str, int], int] = defaultdict(lambda: -1)
    for row, partition in output.rows("shares"):
        id_ = row["id"]
        if id_ not in seen:
            seen.add(id_)
            line = partition, row["kind"], source.lane(id_)
            assert last[line] < id_, (
                f"{id_} comes after {last[line]} (partition, key, lane: {line})"
            )
            last[line] = id_


def _share(row: Row) -> str:
    content = row.content
    return share_text(content["id"], _time(content["at"]), content["kind"], content["share"])


def _minute(row: Row) -> tuple[Any, ...]:
    content = row.content
    return _time(content["minute"]), content["kind"], content["readings"], content["parts"]


def _time(value: str | datetime) -> datetime:
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC)


def _dead_letters(directory: Path) -> list[dict[str, Any]]:
    return DeadLetters(directory / "state" / "readings" / "dead_letters").read().to_pylist()


def _record(letter: dict[str, Any]) -> str:
    if letter["stage"] == "decode":
        return f"{letter['origin']}:{letter['position']}"
    row = json.loads(letter["payload"])
    return str(row["id"] if "id" in row else row["text"].split()[0])

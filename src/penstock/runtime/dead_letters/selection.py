"""Selection of dead letters by node, code and ID."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import UserError
from penstock.core.text import did_you_mean, shorten
from penstock.runtime.dead_letters.dead_letter import DeadLetter, read_rows

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""The size of the payloads of a page, which has at least one letter."""


@dataclass(frozen=True)
class Count:
    """Number of dead letters of a node with one code."""

    node: str
    code: str
    count: int


@dataclass(frozen=True)
class Page:
    """Dead letters, newest first. `next` is the place of the next page; None at the end."""

    letters: list[DeadLetter]
    next: str | None


@dataclass(frozen=True)
class DeadLetterList:
    """Dead letters in order of arrival. `table` has the schema `DEAD_LETTER`."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def ids(self) -> frozenset[str]:
        """The IDs of all letters."""
        return frozenset(self.table.column("id").to_pylist())

    def counts(self) -> list[Count]:
        """Counts letters by node and code, most frequent first."""
        groups = self.table.group_by(["node", "code"]).aggregate([([], "count_all")]).to_pylist()
        counts = [Count(each["node"], each["code"], each["count_all"]) for each in groups]
        return sorted(counts, key=lambda each: (-each.count, each.node, each.code))

    def newest(self, limit: int) -> list[DeadLetter]:
        """Returns the last `limit` letters, newest first."""
        return read_rows(self._sorted().slice(0, limit))

    def page(self, limit: int, before: str | None = None) -> Page:
        """Returns the newest letters before a place, at most `limit` and about `MAX_PAGE_BYTES`.

        A place remains valid when its letter is removed. Raises UserError for a text that is none.
        """
        found = self._sorted()
        if before is not None:
            time, id = _place(before)
            times, ids = found.column("time").cast(pa.int64()), found.column("id")
            earlier = pc.and_(pc.equal(times, time), pc.less(ids, id))
            found = found.filter(pc.or_(pc.less(times, time), earlier))
        sizes = pc.cumulative_sum(pc.fill_null(pc.binary_length(found.column("payload")), 0))
        fitting = int(pc.sum(pc.less_equal(sizes, MAX_PAGE_BYTES)).as_py() or 0)
        part = found.slice(0, min(limit, max(fitting, 1)))
        letters = read_rows(part)
        ends = part.num_rows == found.num_rows
        return Page(letters, None if ends else _place_text(part))

    def _sorted(self) -> pa.Table:
        keys = [("time", "descending"), ("id", "descending")]
        return self.table.take(pc.sort_indices(self.table, sort_keys=keys))


def _place_text(part: pa.Table) -> str:
    last = part.slice(part.num_rows - 1)
    return f"{last.column('time').cast(pa.int64())[0].as_py()}-{last.column('id')[0].as_py()}"


def _place(text: str) -> tuple[int, str]:
    time, dash, id = text.partition("-")
    if not (dash and time.isascii() and time.isdigit() and len(time) < 19):
        raise UserError(
            f'"{text[:80]}" is no place of a dead letter', code="invalid-request",
            hint="Pass the value of next of the page before.",
        )  # fmt: skip
    return int(time), id


@dataclass(frozen=True)
class Selection:
    """Criteria of a selection. None selects all. `id` is the start of an ID."""

    node: str | None = None
    code: str | None = None
    id: str | None = None

    def __bool__(self) -> bool:
        return any((self.node, self.code, self.id))

    def select(self, dead_letters: pa.Table, nodes: Collection[str] = ()) -> DeadLetterList:
        """Returns the selected letters. Raises UserError for an unknown node, code or ID.

        `nodes` are further existing nodes.
        """
        for key, value, known in (("node", self.node, nodes), ("code", self.code, ())):
            names = {*pc.unique(dead_letters.column(key)).to_pylist(), *known}
            if value is not None and value not in names:
                hint = did_you_mean(value, names)
                raise UserError(
                    f'there is no dead letter with {key} "{value}"',
                    code="no-dead-letter",
                    hint=hint,
                )
            if value is not None:
                dead_letters = dead_letters.filter(pc.equal(dead_letters.column(key), value))
        if self.id is not None:
            dead_letters = dead_letters.filter(pc.starts_with(dead_letters.column("id"), self.id))
            if not dead_letters.num_rows:
                raise unknown_start(self.id)
        return DeadLetterList(dead_letters)


ALL = Selection()
_LIST = "List the IDs with penstock dead list."


def unknown_start(id: str) -> UserError:
    """Returns the error of a text with which no ID starts."""
    return UserError(
        f'there is no dead letter whose ID starts with "{shorten(id, 80)}"',
        code="no-dead-letter", hint=_LIST,
    )  # fmt: skip


def require_known(
    ids: Collection[str], stored: Collection[str], interrupted: Collection[str]
) -> None:
    """Raises UserError for an ID of no dead letter, neither stored nor of an interrupted replay."""
    unknown = sorted(set(ids).difference(stored, interrupted))
    if not unknown:
        return
    first, rest = unknown[0], len(unknown) - 1
    raise UserError(
        f'there is no dead letter with the ID "{shorten(first, 80)}"'
        + (f", nor with {rest:,} more of the IDs" if rest else ""),
        code="no-dead-letter",
        hint=did_you_mean(first, stored) or _LIST,
    )

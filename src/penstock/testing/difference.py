"""How the rows of a node differ from those that a case expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.testing.values import same

E = TypeVar("E")
Row = Mapping[str, Any]
_ALIKE = 0.5
"""A missing row and an unexpected one with this share of equal cells are shown as one."""


@dataclass(frozen=True)
class Changed:
    """An expected row, the row that is there instead, and the columns that differ."""

    index: int
    got: Row
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What is wrong with the rows of one node; `index` counts the expected rows from 0."""

    expected: Sequence[Row]
    missing: tuple[int, ...]
    unexpected: tuple[Row, ...]
    changed: tuple[Changed, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.changed)


def compare(expected: Sequence[Row], got: Sequence[Row], *, ordered: bool) -> Difference:
    """The difference; columns that an expected row leaves out match anything."""
    if ordered:
        pairs = {at: at for at, row in enumerate(expected[: len(got)]) if _match(row, got[at])}
    else:
        pairs = matching(expected, got, _match)
    left = [at for at in range(len(expected)) if at not in pairs]
    over = [at for at in range(len(got)) if at not in set(pairs.values())]
    changed = []
    for at, other in list(_alike(expected, got, left, over, ordered)):
        left.remove(at)
        over.remove(other)
        row = expected[at]
        wrong = tuple(n for n, value in row.items() if not same(value, got[other].get(n)))
        changed.append(Changed(at, got[other], wrong))
    return Difference(expected, tuple(left), tuple(got[at] for at in over), tuple(changed))


def _match(expected: Row, got: Row) -> bool:
    return all(name in got and same(value, got[name]) for name, value in expected.items())


def matching(
    expected: Sequence[E], got: Sequence[Row], match: Callable[[E, Row], bool]
) -> dict[int, int]:
    """As many pairs of something expected and a row that matches it as there can be."""
    fits = [[at for at, row in enumerate(got) if match(wanted, row)] for wanted in expected]
    owner: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for other in fits[at]:
            if other not in tried:
                tried.add(other)
                if other not in owner or place(owner[other], tried):
                    owner[other] = at
                    return True
        return False

    for at in sorted(range(len(expected)), key=lambda each: len(fits[each])):
        free = next((other for other in fits[at] if other not in owner), None)
        if free is not None:
            owner[free] = at
        else:
            place(at, set())
    return {at: other for other, at in owner.items()}


def _alike(
    expected: Sequence[Row], got: Sequence[Row], left: list[int], over: list[int], ordered: bool
) -> Iterator[tuple[int, int]]:
    """Pairs of the rows that are left over, the most alike first."""
    scored = [
        (_likeness(expected[at], got[other]), at, other)
        for at in left
        for other in over
        if not ordered or at == other
    ]
    used: set[tuple[str, int]] = set()
    for score, at, other in sorted(scored, key=lambda each: (-each[0], each[1], each[2])):
        close = score >= _ALIKE or len(left) == len(over) == 1
        if close and not {("left", at), ("over", other)} & used:
            used |= {("left", at), ("over", other)}
            yield at, other


def _likeness(expected: Row, got: Row) -> float:
    equal = sum(name in got and same(value, got[name]) for name, value in expected.items())
    return equal / len(expected) if expected else 0.0

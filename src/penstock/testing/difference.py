"""Differences between the expected and the actual rows of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.spec.source_map import Route
from penstock.testing.values import matches_value

E = TypeVar("E")
Row = Mapping[str, Any]
_MIN_SIMILARITY = 0.5
"""The share of equal cells from which a missing and an unexpected row count as a changed row."""


@dataclass(frozen=True)
class ChangedRow:
    """An expected row, by its index, with a similar actual row and the columns that differ."""

    index: int
    actual: Row
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """A difference between the rows of a node. `missing` holds indexes of `expected`."""

    expected: Sequence[Row]
    missing: tuple[int, ...]
    unexpected: tuple[Row, ...]
    changed: tuple[ChangedRow, ...] = ()
    route: Route = ()
    """The place of the expected rows in the case."""
    operation: str | None = None
    """The operation column of the actual rows."""

    @property
    def columns(self) -> list[str]:
        """The columns to show: those of the expected rows, and the operations of changes."""
        rows = self.expected or self.unexpected
        names = dict.fromkeys(name for row in rows for name in row)
        actual = [*self.unexpected, *(row.actual for row in self.changed)]
        if self.operation is not None and any(self.operation in row for row in actual):
            names[self.operation] = None
        return list(names)

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.changed)


def compare_rows(
    expected: Sequence[Row],
    actual: Sequence[Row],
    *,
    ordered: bool,
    route: Route = (),
    operation: str | None = None,
) -> Difference:
    """Returns the difference. Columns absent from an expected row match anything."""
    if ordered:
        indexes = range(min(len(expected), len(actual)))
        pairs = {index: index for index in indexes if _matches(expected[index], actual[index])}
    else:
        pairs = match_rows(expected, actual, _matches)
    matched = set(pairs.values())
    missing = [index for index in range(len(expected)) if index not in pairs]
    unexpected = [index for index in range(len(actual)) if index not in matched]
    changed = []
    for index, actual_index in list(
        _pair_similar_rows(expected, actual, missing, unexpected, ordered=ordered)
    ):
        missing.remove(index)
        unexpected.remove(actual_index)
        row = actual[actual_index]
        columns = tuple(
            name
            for name, value in expected[index].items()
            if not matches_value(value, row.get(name))
        )
        changed.append(ChangedRow(index, row, columns))
    unexpected_rows = tuple(actual[index] for index in unexpected)
    return Difference(expected, tuple(missing), unexpected_rows, tuple(changed), route, operation)


def match_rows(
    expected: Sequence[E], actual: Sequence[Row], matches: Callable[[E, Row], bool]
) -> dict[int, int]:
    """Returns a maximum matching, from indexes of `expected` to indexes of `actual`."""
    candidates = [
        [index for index, row in enumerate(actual) if matches(item, row)] for item in expected
    ]
    assigned: dict[int, int] = {}

    def assign(index: int, visited: set[int]) -> bool:
        """Assigns an actual row along an augmenting path. Returns whether a path exists."""
        for candidate in candidates[index]:
            if candidate not in visited:
                visited.add(candidate)
                if candidate not in assigned or assign(assigned[candidate], visited):
                    assigned[candidate] = index
                    return True
        return False

    for index in sorted(range(len(expected)), key=lambda index: len(candidates[index])):
        free = next((row for row in candidates[index] if row not in assigned), None)
        if free is not None:
            assigned[free] = index
        else:
            assign(index, set())
    return {index: candidate for candidate, index in assigned.items()}


def _matches(expected: Row, actual: Row) -> bool:
    return all(
        name in actual and matches_value(value, actual[name]) for name, value in expected.items()
    )


def _pair_similar_rows(
    expected: Sequence[Row],
    actual: Sequence[Row],
    missing: Sequence[int],
    unexpected: Sequence[int],
    *,
    ordered: bool,
) -> Iterator[tuple[int, int]]:
    """Yields indexes of a missing and an unexpected row, the most similar rows first."""
    scored = [
        (-_similarity(expected[index], actual[actual_index]), index, actual_index)
        for index in missing
        for actual_index in unexpected
        if not ordered or index == actual_index
    ]
    only_pair = len(missing) == len(unexpected) == 1
    paired: set[int] = set()
    paired_actual: set[int] = set()
    for score, index, actual_index in sorted(scored):
        similar = -score >= _MIN_SIMILARITY or only_pair
        if similar and index not in paired and actual_index not in paired_actual:
            paired.add(index)
            paired_actual.add(actual_index)
            yield index, actual_index


def _similarity(expected: Row, actual: Row) -> float:
    equal = sum(
        name in actual and matches_value(value, actual[name]) for name, value in expected.items()
    )
    return equal / len(expected) if expected else 0.0

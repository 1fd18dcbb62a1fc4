"""Which cases of a test are quick: those that a developer runs after each change.

A test with the marker `quick(count)` has many cases of one kind: seeds, types, formats. So many of
them, evenly spread, are quick tests. The others get the marker `slow`: `./dev test --quick` leaves
them out, and CI runs all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the cases that are not quick, before pytest selects by markers."""
    cases: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if marker := item.get_closest_marker("quick"):
            test = item.nodeid.partition("[")[0]
            cases.setdefault((test, *marker.args), []).append(item)
    for (_, count), items_of_test in cases.items():
        for item in rest(items_of_test, count):
            item.add_marker("slow")


T = TypeVar("T")


def rest(cases: Sequence[T], count: int) -> list[T]:
    """Returns the cases after the first, except `count` - 1 evenly spread ones."""
    quick = {number * len(cases) // count for number in range(count)}
    return [case for number, case in enumerate(cases) if number not in quick]

"""What the tests of several connectors share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from taking import Take, Taking


@pytest.fixture
def taking() -> Iterator[Take]:
    """`taking(source)` receives until the end of the test."""
    running: list[Taking] = []

    def taking(source: Any, kind: type[Taking] = Taking) -> Any:
        running.append(kind(source))
        return running[-1]

    yield taking
    for each in running:
        each.receiving.close()

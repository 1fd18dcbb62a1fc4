"""Positions of Pulsar messages: their order, and the position before a message."""

from __future__ import annotations

import pytest

from penstock.connectors.pulsar.offsets import (
    AFTER_LAST,
    BEFORE_FIRST,
    MessagePosition,
    offset_json,
    parse_offset,
)


@pytest.mark.parametrize(
    ("text", "position", "predecessor"),
    [
        ("17:4", (17, 4, -1), (17, 3, -1)),
        ("17:4:0", (17, 4, 0), (17, 3, -1)),
        ("17:4:2", (17, 4, 2), (17, 4, 1)),
        ("17:0", (17, 0, -1), (17, -1, -1)),
    ],
)
def test_positions(
    text: str, position: tuple[int, int, int], predecessor: tuple[int, int, int]
) -> None:
    found = MessagePosition.parse(text)
    assert tuple(found) == position
    assert tuple(found.predecessor()) == predecessor
    assert BEFORE_FIRST < found.predecessor() < found < AFTER_LAST


def test_numbers_grow_with_the_messages() -> None:
    positions = [MessagePosition.parse(text) for text in ("3:0", "3:1", "4:0", f"4:{2**24 - 1}")]
    numbers = [position.number for position in positions]
    assert numbers == sorted({*numbers}) and numbers[-1] < 2**63


def test_positions_as_json() -> None:
    positions = {"b": MessagePosition(1, 2, -1), "a": MessagePosition(3, 4, 5)}
    assert parse_offset(offset_json(positions)) == positions

"""IDs of the entries of Redis streams: their order, and their place as a signed integer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.connectors.redis.offsets import ZERO, EntryId, ids_of, offset_of

MAX = 2**64 - 1


@pytest.mark.parametrize(
    ("id_", "previous"),
    [
        (EntryId(7, 3), EntryId(7, 2)),
        (EntryId(7, 0), EntryId(6, MAX)),
        (EntryId(0, 1), ZERO),
        (ZERO, ZERO),
    ],
)
def test_the_id_below(id_: EntryId, previous: EntryId) -> None:
    assert id_.previous == previous


@pytest.mark.parametrize(
    ("sequence", "position"), [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (MAX, -1)]
)
def test_a_position_is_a_signed_integer(sequence: int, position: int) -> None:
    id_ = EntryId(7, sequence)
    assert id_.position == position
    assert EntryId.at_position(7, position) == id_


def test_ids_as_text() -> None:
    assert EntryId.parse("1700000000000-3") == EntryId.parse(b"1700000000000-3")
    assert EntryId.parse("7") == EntryId(7, 0)
    for text in ("x", f"{MAX + 1}-0", f"0-{MAX + 1}"):
        with pytest.raises(ValueError, match=r"entry ID|invalid literal"):
            EntryId.parse(text)
    ids = {"b": EntryId(9, 1), "a": EntryId(10, 0)}
    assert list(offset_of(ids)["streams"]) == ["a", "b"]
    assert ids_of(offset_of(ids)) == ids


def test_the_lowest_id_of_a_time() -> None:
    assert EntryId.at_time(datetime(1970, 1, 1, 0, 0, 1, 5_000, UTC)) == EntryId(1_005, 0)
    assert EntryId.at_time(datetime(1969, 1, 1, tzinfo=UTC)) == ZERO

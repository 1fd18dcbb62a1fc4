"""Offsets of a JetStream stream: the messages that are left, and those that are lost."""

from __future__ import annotations

import pytest

from penstock.connectors.nats.offsets import Extent, StreamOffset

EXTENT = Extent(5, 10, "2024", deletion_is_loss=True)


@pytest.mark.parametrize(("sequence", "created", "first"), [
    (3, "2024", 5), (5, "2024", 5), (7, "2024", 7), (10, "2024", 10), (7, "2023", 5),
])  # fmt: skip
def test_the_first_unread_message(sequence: int, created: str, first: int) -> None:
    assert EXTENT.first_unread(StreamOffset(sequence, created)) == first


@pytest.mark.parametrize(
    ("sequence", "created", "loss"),
    [
        (5, "2024", None),
        (10, "2024", None),
        (4, "2024", 'messages 4 to 4 of stream "s" were deleted before they were read'),
        (11, "2024", 'stream "s" was deleted and recreated'),
        (7, "2023", 'stream "s" was deleted and recreated'),
    ],
)
def test_data_loss(sequence: int, created: str, loss: str | None) -> None:
    offset = StreamOffset(sequence, created)
    assert EXTENT.data_loss("s", offset) == loss
    superseded = EXTENT._replace(deletion_is_loss=False).data_loss("s", offset)
    assert superseded == (loss if loss is not None and "recreated" in loss else None)


def test_an_offset_as_json() -> None:
    offset = StreamOffset(17, "2024")
    assert StreamOffset.parse(offset.to_json()) == offset

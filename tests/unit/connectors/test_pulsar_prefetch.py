"""Pulsar: the number of prefetched messages follows their size."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.pulsar import reader
from penstock.connectors.pulsar.prefetch import MAX_PREFETCH, Prefetch
from penstock.connectors.pulsar.reader import Range, read_range
from penstock.sdk.network.byte_budget import BYTES_IN_FLIGHT

MIB = 1 << 20


def observe(prefetch: Prefetch, *sizes: int) -> list[int]:
    """Returns the numbers to which the prefetch changes."""
    return [prefetch.count for size in sizes if prefetch.observe(size)]


def test_prefetched_bytes_are_bounded_from_the_start() -> None:
    assert Prefetch().count * 5 * MIB <= BYTES_IN_FLIGHT
    assert observe(Prefetch(), *[5 * MIB] * 2000) == []


def test_small_messages_are_prefetched_in_numbers() -> None:
    prefetch = Prefetch()
    assert observe(prefetch, *[100] * 5000) == [MAX_PREFETCH]


def test_large_message_reduces_the_number_at_once_and_for_a_time() -> None:
    prefetch = Prefetch()
    observe(prefetch, *[100] * 12)
    assert observe(prefetch, 16 * MIB, *[100] * 999) == [4]
    assert observe(prefetch, 100) == [MAX_PREFETCH]
    assert observe(prefetch, 100 * MIB) == [1]


class Client:
    """A client of a topic with messages of the given sizes."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes
        self.opened: list[tuple[int, int]] = []

    def create_reader(self, partition: str, start: int, receiver_queue_size: int) -> Any:
        self.opened.append((start, receiver_queue_size))
        numbers = iter(range(start, len(self._sizes)))

        def read_next(timeout: int) -> Any:
            number = next(numbers)
            return SimpleNamespace(
                message_id=lambda: number + 1, data=lambda: bytes(self._sizes[number])
            )

        return SimpleNamespace(
            has_message_available=lambda: True, read_next=read_next, close=lambda: None
        )


class Position(int):
    """A message ID that is a number."""

    @classmethod
    def of(cls, message_id: int) -> Position:
        return cls(message_id)

    @property
    def message_id(self) -> int:
        return int(self)


def test_reader_is_opened_again_after_its_last_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MessagePosition", Position)
    client: Any = Client(*[10] * 20, 20 * MIB, *[10] * 29)
    range_: Any = Range("topic", Position(0), Position(40))  # type: ignore[arg-type]
    read: list[int] = []
    with suppress(StopIteration):
        read = [message.message_id() for message in read_range(client, range_, 1)]
    assert read == list(range(1, 41))
    assert client.opened == [(0, 12), (12, MAX_PREFETCH), (21, 3)]
    assert all(first[0] < second[0] for first, second in pairwise(client.opened))

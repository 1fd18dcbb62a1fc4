"""Durations and sizes with units, as values of options and as text."""

from __future__ import annotations

import pytest

from penstock.core.units import (
    binary_size_text,
    byte_count,
    duration_text,
    positive_seconds,
    seconds,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250us", 0.00025), ("500ms", 0.5), ("1.5s", 1.5), ("2 sec", 2), ("3 minutes", 180),
        ("2h", 7200), ("1h30m", 5400), ("1 day", 86_400), ("2 Weeks", 14 * 86_400),
        ("1w", 7 * 86_400),
    ],
)  # fmt: skip
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "10", "10 x", "s", "1h 30", "-1s", "1s,", 10, True])
def test_invalid_durations(text: str | int) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        seconds(text)


def test_the_shortest_duration() -> None:
    assert positive_seconds("1ms") == 0.001
    with pytest.raises(ValueError, match="at least 1ms"):
        positive_seconds("999us")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (7, 7), ("7", 7), ("7 b", 7), ("2 KB", 2_000), ("2 k", 2_048), ("2KiB", 2_048),
        ("1.5 MB", 1_500_000), ("1m", 1 << 20), ("3 GB", 3 * 10**9), ("1 GiB", 1 << 30),
        ("1 TB", 10**12), ("1 tib", 1 << 40), ("10 bytes", 10),
    ],
)  # fmt: skip
def test_sizes(text: str | int, value: int) -> None:
    assert byte_count(text) == value


@pytest.mark.parametrize("text", ["", "1 XB", "MB", "1 MB 2", "²", True])
def test_invalid_sizes(text: str | bool) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        byte_count(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2, "200ms"), (1, "1s"), (1.5, "1.5s"), (60, "1m"), (90, "90s"), (7200, "2h"),
     (5400, "90m"), (172_800, "2d")],
)  # fmt: skip
def test_text_of_a_duration(value: float, text: str) -> None:
    assert duration_text(value) == text


def test_text_of_a_size() -> None:
    assert [size_text(value) for value in (0, 999, 1_000, 1_500_000, 10**9, 2 * 10**12)] == [
        "0 B", "999 B", "1.0 KB", "1.5 MB", "1.0 GB", "2.0 TB",
    ]  # fmt: skip
    assert [binary_size_text(value << 20) for value in (512, 1023, 1024, 1536)] == [
        "512 MiB", "1023 MiB", "1 GiB", "1.5 GiB",
    ]  # fmt: skip

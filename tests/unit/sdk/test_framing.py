"""Lengths in digits: how they are written, and what is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import Rejected
from penstock.sdk.kit.framing import Numbered, divider, framed

TEN = Numbered(digits=10)


def test_as_it_is_written() -> None:
    assert framed(b"hello", TEN) == b"0000000005hello"
    assert framed(b"", TEN) == b"0000000000"


def test_what_the_digits_cannot_tell() -> None:
    assert framed(b"x" * 9, Numbered(digits=1)) == b"9" + b"x" * 9
    with pytest.raises(Rejected, match="more than 1 digits can tell") as caught:
        framed(b"x" * 10, Numbered(digits=1))
    assert caught.value.code == "too-long"


@given(st.lists(st.binary(max_size=9)), st.integers(1, 18), st.integers(1, 30))
def test_the_same_messages_in_pieces_of_any_size(
    messages: list[bytes], digits: int, size: int
) -> None:
    framing = Numbered(digits=digits)
    data = b"".join(framed(each, framing) for each in messages)
    found, taken = divider(framing, 100), []
    for at in range(0, len(data), size):
        taken += found.divided(data[at : at + size])
    assert taken + found.ended() == messages
    assert not found.lost and found.out_of_step is None


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"GET / HTTP/1.1", "'GET / HTTP'"),
        (b"+000000005hello", "'+000000005'"),
        (b"         5hello", "'         5'"),
        (b"\xff\x00", r"'\xff\x00'"),
        ("٣".encode(), r"'\xd9\xa3'"),
        (b"00000x", "'00000x'"),
    ],
)
def test_what_is_no_length(data: Any, shown: str) -> None:
    """What came before it is given, and nothing that comes after."""
    found = divider(TEN, 100)
    assert found.divided(b"0000000001a" + data) == [b"a"]
    assert found.out_of_step is not None and found.lost == 1
    message = found.out_of_step.message
    assert message == f"expected the length of a message in 10 digits, not {shown}"
    assert found.divided(b"0000000001b") == found.ended() == [] and found.lost == 1


def test_what_is_skipped_is_not_taken_for_a_length() -> None:
    found = divider(Numbered(digits=2), 3)
    assert found.divided(b"05abc") == []
    assert found.divided(b"de01f") == [b"f"]
    assert found.lost == 1 and found.out_of_step is None

"""Lengths in digits: how they are written, and what is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import Rejected
from penstock.sdk.messages.framing import (
    DelimiterFraming,
    DigitPrefixFraming,
    LengthPrefixFraming,
    encode_frame,
    frame_decoder,
)

TEN = DigitPrefixFraming(digits=10)


def test_as_it_is_written() -> None:
    assert encode_frame(b"hello", TEN) == b"0000000005hello"
    assert encode_frame(b"", TEN) == b"0000000000"


def test_a_length_with_too_many_digits() -> None:
    assert encode_frame(b"x" * 9, DigitPrefixFraming(digits=1)) == b"9" + b"x" * 9
    with pytest.raises(Rejected, match="exceed a length of 1 digits") as caught:
        encode_frame(b"x" * 10, DigitPrefixFraming(digits=1))
    assert caught.value.code == "too-large"


@pytest.mark.slow
@given(st.lists(st.binary(max_size=9)), st.integers(1, 18), st.integers(1, 30))
def test_the_same_messages_in_pieces_of_any_size(
    messages: list[bytes], digits: int, size: int
) -> None:
    framing = DigitPrefixFraming(digits=digits)
    data = b"".join(encode_frame(each, framing) for each in messages)
    found, taken = frame_decoder(framing, 100), []
    for at in range(0, len(data), size):
        taken += found.feed(data[at : at + size])
    assert taken + found.finish() == messages
    assert not found.lost and found.error is None


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
def test_an_invalid_length(data: Any, shown: str) -> None:
    """The messages before it are returned, and none after it."""
    found = frame_decoder(TEN, 100)
    assert found.feed(b"0000000001a" + data) == [b"a"]
    assert found.error is not None and found.lost == 1
    message = found.error.message
    assert message == f"expected the length of a message in 10 digits, not {shown}"
    assert found.feed(b"0000000001b") == found.finish() == [] and found.lost == 1


@pytest.mark.slow
@given(
    st.lists(st.binary(max_size=9).filter(lambda each: b"|" not in each), max_size=9),
    st.integers(1, 12),
)
def test_messages_with_a_delimiter_in_pieces_of_any_size(messages: list[bytes], size: int) -> None:
    framing = DelimiterFraming(delimiter="||")
    data = b"".join(encode_frame(each, framing) for each in messages)
    found, taken = frame_decoder(framing, 100), []
    for at in range(0, len(data), size):
        taken += found.feed(data[at : at + size])
    assert taken + found.finish() == messages and not found.lost


def test_the_longest_message_of_a_length_prefix() -> None:
    framing = LengthPrefixFraming(length=1)
    data = encode_frame(b"x" * 255, framing)
    assert frame_decoder(framing, 255).feed(data) == [b"x" * 255]
    with pytest.raises(Rejected, match="exceed a length of 1 bytes"):
        encode_frame(b"x" * 256, framing)


def test_a_skipped_message_is_not_read_as_a_length() -> None:
    found = frame_decoder(DigitPrefixFraming(digits=2), 3)
    assert found.feed(b"05abc") == []
    assert found.feed(b"de01f") == [b"f"]
    assert found.lost == 1 and found.error is None

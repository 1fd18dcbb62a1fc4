"""Framing of messages in a byte stream: lines, delimiters or length prefixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import AfterValidator, Field

from penstock.core.errors import DecodeError, Rejected
from penstock.core.text import plural
from penstock.core.units import size_text
from penstock.sdk.config import Config
from penstock.sdk.record import Failure


def _check_nonempty(text: str) -> str:
    if not text:
        raise ValueError("expected at least one character")
    return text


class DelimiterFraming(Config):
    """Messages that end with a delimiter."""

    delimiter: Annotated[str, AfterValidator(_check_nonempty)]
    """The text after each message, such as `"\\0"` or `"||"`."""


class LengthPrefixFraming(Config):
    """Messages with a binary length prefix."""

    length: Literal[1, 2, 4]
    """The size of the length prefix in bytes."""
    order: Literal["big", "little"] = "big"
    """The byte order of the length prefix."""

    @property
    def size(self) -> int:
        """Size of the prefix in bytes."""
        return self.length

    @property
    def unit(self) -> str:
        """Unit of `size`, for messages."""
        return "bytes"

    @property
    def max_length(self) -> int:
        """The longest message that the prefix can express."""
        return (1 << 8 * self.length) - 1

    def encode_length(self, length: int) -> bytes:
        return length.to_bytes(self.length, self.order)

    def decode_length(self, data: bytes) -> int:
        """Returns the length in a prefix."""
        return int.from_bytes(data, self.order)


class DigitPrefixFraming(Config):
    """Messages with a decimal length prefix."""

    digits: int = Field(ge=1, le=18)
    """The number of digits of the prefix, zero-padded: 10 for `0000000005hello`."""

    @property
    def size(self) -> int:
        """Size of the prefix in bytes."""
        return self.digits

    @property
    def unit(self) -> str:
        """Unit of `size`, for messages."""
        return "digits"

    @property
    def max_length(self) -> int:
        """The longest message that the prefix can express."""
        return int(10**self.digits) - 1

    def encode_length(self, length: int) -> bytes:
        return b"%0*d" % (self.digits, length)

    def decode_length(self, data: bytes) -> int:
        """Parses a length or the beginning of one. Raises DecodeError for other bytes."""
        if data and not data.isdigit():
            raise DecodeError(
                f"expected the length of a message in {plural(self.digits, 'digit')}, "
                f"not {data.decode('latin-1')!a}",
                code="out-of-step",
            )
        return int(data or b"0")


Framing = Literal["lines"] | DelimiterFraming | LengthPrefixFraming | DigitPrefixFraming


def encode_frame(payload: bytes, framing: Framing) -> bytes:
    """Adds the frame to a message. Raises Rejected if the framing cannot express the message."""
    if isinstance(framing, LengthPrefixFraming | DigitPrefixFraming):
        if len(payload) > framing.max_length:
            raise Rejected(
                f"{size_text(len(payload))} exceed a length of {framing.size} {framing.unit}",
                code="too-large",
            )
        return framing.encode_length(len(payload)) + payload
    end = b"\n" if framing == "lines" else framing.delimiter.encode()
    if end in payload:
        raise Rejected("the message contains the delimiter", code="contains-delimiter")
    return payload + end


def encode_frames(payloads: pa.BinaryArray, framing: Framing) -> tuple[list[bytes], list[Failure]]:
    """Returns the framed messages, and the failures of messages that cannot be framed."""
    data, failures = [], []
    for index, payload in enumerate(payloads.to_pylist()):
        try:
            data.append(encode_frame(payload, framing))
        except Rejected as error:
            failures.append(Failure(index, error))
    return data, failures


class FrameDecoder(ABC):
    """A decoder that splits a byte stream into messages.

    Messages longer than `max_size` bytes are skipped and counted in `lost`. The buffer never
    exceeds `max_size` plus the last chunk.

    `error` is set when the boundaries of messages are lost. The stream is unusable from then on,
    and the connection should be closed.
    """

    def __init__(self, max_size: int) -> None:
        self.lost = 0
        self.error: DecodeError | None = None
        self._max_size = max_size
        self._buffer = bytearray()

    @property
    def buffered(self) -> int:
        """The number of bytes of the incomplete message."""
        return len(self._buffer)

    @abstractmethod
    def feed(self, data: bytes) -> list[bytes]:
        """Returns the messages completed by `data`."""

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Returns the remaining message at the end of the stream. An incomplete message is lost."""


def frame_decoder(framing: Framing, max_size: int) -> FrameDecoder:
    """Returns a decoder for a connection."""
    if isinstance(framing, LengthPrefixFraming | DigitPrefixFraming):
        return _LengthDecoder(framing, max_size)
    return _DelimiterDecoder(framing, max_size)


class _DelimiterDecoder(FrameDecoder):
    def __init__(self, framing: Literal["lines"] | DelimiterFraming, max_size: int) -> None:
        super().__init__(max_size)
        self._lines = framing == "lines"
        self._end = b"\n" if framing == "lines" else framing.delimiter.encode()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        searched = max(0, len(self._buffer) - len(self._end) + 1)
        self._buffer += data
        if self._buffer.find(self._end, searched) < 0:
            if len(self._buffer) > self._max_size + len(self._end):
                self._skip()
            return []
        *messages, remainder = bytes(self._buffer).split(self._end)
        self._buffer = bytearray(remainder)
        if self._skipping:
            messages, self._skipping = messages[1:], False
        return self._accept(messages)

    def finish(self) -> list[bytes]:
        remainder, skipped = bytes(self._buffer), self._skipping
        self._buffer, self._skipping = bytearray(), False
        return self._accept([remainder]) if remainder and not skipped else []

    def _skip(self) -> None:
        """Drops all but a possible start of the delimiter."""
        self.lost += not self._skipping
        self._skipping = True
        del self._buffer[: len(self._buffer) - len(self._end) + 1]

    def _accept(self, messages: list[bytes]) -> list[bytes]:
        if self._lines:
            lines = (message.removesuffix(b"\r") for message in messages)
            messages = [line for line in lines if line.strip()]
        accepted = [message for message in messages if len(message) <= self._max_size]
        self.lost += len(messages) - len(accepted)
        return accepted


class _LengthDecoder(FrameDecoder):
    def __init__(self, framing: LengthPrefixFraming | DigitPrefixFraming, max_size: int) -> None:
        super().__init__(max_size)
        self._framing = framing
        self._to_skip = 0

    def feed(self, data: bytes) -> list[bytes]:
        if self.error is not None:
            return []
        self._buffer += data
        messages: list[bytes] = []
        try:
            position = self._take(messages)
        except DecodeError as error:
            self.error = error
            self.lost += 1
            position = len(self._buffer)
        del self._buffer[:position]
        return messages

    def finish(self) -> list[bytes]:
        self.lost += bool(self._buffer)
        self._buffer.clear()
        return []

    def _take(self, messages: list[bytes]) -> int:
        """Adds the complete messages. Returns the start of the next one."""
        position = 0
        while True:
            skipped = min(self._to_skip, len(self._buffer) - position)
            self._to_skip -= skipped
            position += skipped
            body = position + self._framing.size
            length = self._framing.decode_length(bytes(self._buffer[position:body]))
            if body > len(self._buffer):
                return position
            if length > self._max_size:
                self.lost += 1
                position, self._to_skip = body, length
                continue
            if body + length > len(self._buffer):
                return position
            messages.append(bytes(self._buffer[body : body + length]))
            position = body + length

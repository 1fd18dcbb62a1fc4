"""Where a message ends in a stream of bytes: lines, a delimiter, or its length before it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import AfterValidator

from penstock.core.errors import Rejected
from penstock.core.units import size_text
from penstock.sdk.config import Config
from penstock.sdk.record import Failure


def _some(text: str) -> str:
    if not text:
        raise ValueError("a delimiter is at least one character")
    return text


class Delimited(Config):
    """Messages with the same bytes after each of them."""

    delimiter: Annotated[str, AfterValidator(_some)]
    """What stands after each message, as in `"\\0"` or `"||"`."""


class Prefixed(Config):
    """Messages with their length before each of them."""

    length: Literal[1, 2, 4]
    """How many bytes the length takes."""
    order: Literal["big", "little"] = "big"
    """The order of its bytes."""


Framing = Literal["lines"] | Delimited | Prefixed


def framed(payload: bytes, framing: Framing) -> bytes:
    """A message as it is sent. Raises Rejected where it would not arrive as one."""
    if isinstance(framing, Prefixed):
        if len(payload) >= 1 << 8 * framing.length:
            raise Rejected(
                f"{size_text(len(payload))} are more than {framing.length} bytes can tell",
                code="too-long",
            )
        return len(payload).to_bytes(framing.length, framing.order) + payload
    end = b"\n" if framing == "lines" else framing.delimiter.encode()
    if end in payload:
        raise Rejected("the message has a delimiter in it", code="framing")
    return payload + end


def all_framed(payloads: pa.BinaryArray, framing: Framing) -> tuple[list[bytes], list[Failure]]:
    """Messages as they are sent, and those that cannot be."""
    data, failures = [], []
    for at, payload in enumerate(payloads.to_pylist()):
        try:
            data.append(framed(payload, framing))
        except Rejected as error:
            failures.append(Failure(at, error))
    return data, failures


class Divider(ABC):
    """Takes bytes as they come, and gives the messages in them.

    Those of more than `most` bytes are left out, and counted in `lost`; at no time is more kept
    in memory than that and what was just given.
    """

    def __init__(self, most: int) -> None:
        self.lost = 0
        self._most = most
        self._held = bytearray()

    @abstractmethod
    def divided(self, data: bytes) -> list[bytes]:
        """The messages that `data` completes."""

    @abstractmethod
    def ended(self) -> list[bytes]:
        """What is left when nothing more comes; what is no whole message is lost."""


def divider(framing: Framing, most: int) -> Divider:
    """A new one, for one connection."""
    if isinstance(framing, Prefixed):
        return _ByLength(framing, most)
    return _ByEnd(framing, most)


class _ByEnd(Divider):
    def __init__(self, framing: Literal["lines"] | Delimited, most: int) -> None:
        super().__init__(most)
        self._lines = framing == "lines"
        self._end = b"\n" if framing == "lines" else framing.delimiter.encode()
        self._skipping = False

    def divided(self, data: bytes) -> list[bytes]:
        seen = max(0, len(self._held) - len(self._end) + 1)
        self._held += data
        if self._held.find(self._end, seen) < 0:
            if len(self._held) > self._most + len(self._end):
                self._skip()
            return []
        *pieces, rest = bytes(self._held).split(self._end)
        self._held = bytearray(rest)
        if self._skipping:
            pieces, self._skipping = pieces[1:], False
        return self._taken(pieces)

    def ended(self) -> list[bytes]:
        rest, skipped = bytes(self._held), self._skipping
        self._held, self._skipping = bytearray(), False
        return self._taken([rest]) if rest and not skipped else []

    def _skip(self) -> None:
        """Keeps no more than may be the beginning of the delimiter."""
        self.lost += not self._skipping
        self._skipping = True
        del self._held[: len(self._held) - len(self._end) + 1]

    def _taken(self, pieces: list[bytes]) -> list[bytes]:
        if self._lines:
            pieces = [line for each in pieces if (line := each.removesuffix(b"\r")).strip()]
        taken = [piece for piece in pieces if len(piece) <= self._most]
        self.lost += len(pieces) - len(taken)
        return taken


class _ByLength(Divider):
    def __init__(self, framing: Prefixed, most: int) -> None:
        super().__init__(most)
        self._size, self._order = framing.length, framing.order
        self._to_skip = 0

    def divided(self, data: bytes) -> list[bytes]:
        self._held += data
        found, at = [], 0
        while True:
            skipped = min(self._to_skip, len(self._held) - at)
            self._to_skip -= skipped
            at += skipped
            body = at + self._size
            if body > len(self._held):
                break
            length = int.from_bytes(self._held[at:body], self._order)
            if length > self._most:
                self.lost += 1
                at, self._to_skip = body, length
                continue
            if body + length > len(self._held):
                break
            found.append(bytes(self._held[body : body + length]))
            at = body + length
        del self._held[:at]
        return found

    def ended(self) -> list[bytes]:
        self.lost += bool(self._held)
        self._held.clear()
        return []

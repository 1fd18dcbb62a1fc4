"""Where a message ends in a stream of bytes: lines, a delimiter, or its length before it."""

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

    @property
    def size(self) -> int:
        """The bytes of a length."""
        return self.length

    @property
    def unit(self) -> str:
        """What a length is made of."""
        return "bytes"

    @property
    def most(self) -> int:
        """The longest message that it can tell."""
        return (1 << 8 * self.length) - 1

    def written(self, length: int) -> bytes:
        return length.to_bytes(self.length, self.order)

    def read(self, data: bytes) -> int:
        """The length that these bytes are."""
        return int.from_bytes(data, self.order)


class Numbered(Config):
    """Messages with their length before each of them, as a decimal number."""

    digits: int = Field(ge=1, le=18)
    """How many digits the length takes, with zeros in front: 10 for `0000000005hello`."""

    @property
    def size(self) -> int:
        """The bytes of a length."""
        return self.digits

    @property
    def unit(self) -> str:
        """What a length is made of."""
        return "digits"

    @property
    def most(self) -> int:
        """The longest message that it can tell."""
        return int(10**self.digits) - 1

    def written(self, length: int) -> bytes:
        return b"%0*d" % (self.digits, length)

    def read(self, data: bytes) -> int:
        """The length that these bytes are, or begin. Raises DecodeError if they cannot be one."""
        if data and not data.isdigit():
            raise DecodeError(
                f"expected the length of a message in {plural(self.digits, 'digit')}, "
                f"not {data.decode('latin-1')!a}",
                code="out-of-step",
            )
        return int(data or b"0")


Framing = Literal["lines"] | Delimited | Prefixed | Numbered


def framed(payload: bytes, framing: Framing) -> bytes:
    """A message as it is sent. Raises Rejected where it would not arrive as one."""
    if isinstance(framing, Prefixed | Numbered):
        if len(payload) > framing.most:
            raise Rejected(
                f"{size_text(len(payload))} are more than {framing.size} {framing.unit} can tell",
                code="too-long",
            )
        return framing.written(len(payload)) + payload
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

    Once `out_of_step` says why the end of a message cannot be told, nothing more is found, and
    what comes belongs nowhere: whoever reads a connection leaves it.
    """

    def __init__(self, most: int) -> None:
        self.lost = 0
        self.out_of_step: DecodeError | None = None
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
    if isinstance(framing, Prefixed | Numbered):
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
    def __init__(self, framing: Prefixed | Numbered, most: int) -> None:
        super().__init__(most)
        self._framing = framing
        self._to_skip = 0

    def divided(self, data: bytes) -> list[bytes]:
        if self.out_of_step is not None:
            return []
        self._held += data
        found: list[bytes] = []
        try:
            at = self._take(found)
        except DecodeError as error:
            self.out_of_step = error
            self.lost += 1
            at = len(self._held)
        del self._held[:at]
        return found

    def ended(self) -> list[bytes]:
        self.lost += bool(self._held)
        self._held.clear()
        return []

    def _take(self, found: list[bytes]) -> int:
        """Adds the messages that are complete. Returns where the next one begins."""
        at = 0
        while True:
            skipped = min(self._to_skip, len(self._held) - at)
            self._to_skip -= skipped
            at += skipped
            body = at + self._framing.size
            length = self._framing.read(bytes(self._held[at:body]))
            if body > len(self._held):
                return at
            if length > self._most:
                self.lost += 1
                at, self._to_skip = body, length
                continue
            if body + length > len(self._held):
                return at
            found.append(bytes(self._held[body : body + length]))
            at = body + length

"""Files of JSON values that are not lines: arrays, and objects of several lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.core.units import size_text
from penstock.sdk.encoding.lines import BLOCK, MAX_LENGTH

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(_STRING + rb'|["\[\]{}]', re.DOTALL)
_OTHER = re.compile(_STRING + rb"|[^\s,]+", re.DOTALL)
_MARK = b"\xef\xbb\xbf"
_CONTINUED = (b"{", b"[", b",", b":")


class Values(NamedTuple):
    """Values, the number of each in its file from 1, and the number, start and error of others."""

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    bad: Sequence[tuple[int, bytes | None, DecodeError]]


def has_values(start: bytes) -> bool:
    """Returns whether a file that starts with these bytes is an array or has objects of lines."""
    text = start.removeprefix(_MARK).lstrip()
    if text.startswith(b"["):
        return True
    line, line_end, _ = text.partition(b"\n")
    return text.startswith(b"{") and bool(line_end) and line.rstrip().endswith(_CONTINUED)


def read_values(
    file: BinaryIO, *, block: int = BLOCK, max_length: int = MAX_LENGTH
) -> Iterator[Values]:
    """Yields the values of a file in blocks: the elements of its arrays, and its other values.

    Commas between values are optional. A value longer than `max_length` is not kept in memory.
    """
    splitter = _Splitter(max_length)
    chunk = file.read(block).removeprefix(_MARK)
    while chunk:
        yield splitter.split(chunk)
        chunk = file.read(block)
    yield splitter.end()


class _Splitter:
    """The state between two blocks: the text that is not split yet."""

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length
        self.text = b""
        self.scanned = 0
        self.depth = 0
        self.in_array = self.too_long = False
        self.count = 0
        self.texts: list[bytes] = []
        self.numbers: list[int] = []
        self.bad: list[tuple[int, bytes | None, DecodeError]] = []

    def split(self, chunk: bytes) -> Values:
        """Returns the values that end in a chunk."""
        text = self.text + chunk
        start = 0
        position = len(text)
        for token in _TOKEN.finditer(text, self.scanned):
            first = text[token.start()]
            if first == 34:
                if token.end() - token.start() == 1:
                    position = token.start()
                    break
            elif first in b"[{":
                if self.depth == 0:
                    self._add_others(text[start : token.start()])
                    start = token.start()
                if self.depth == 0 and first == 91 and not self.in_array:
                    self.in_array, start = True, token.end()
                else:
                    self.depth += 1
            elif self.depth:
                self.depth -= 1
                if self.depth == 0:
                    self._add(text[start : token.end()])
                    start = token.end()
            elif first == 93 and self.in_array:
                self._add_others(text[start : token.start()])
                self.in_array, start = False, token.end()
        self.text, self.scanned = text[start:], position - start
        if len(self.text) > self.max_length:
            self._skip()
        return self._take()

    def end(self) -> Values:
        """Returns the rest of a file, and the error of an array that is not closed."""
        if self.depth == 0 and not self.too_long:
            self._add_others(self.text)
        elif not self.too_long:
            self._add(self.text)
        if self.in_array:
            error = DecodeError("the array is not closed: the file is truncated", code="not-json")
            self.bad.append((self.count + 1, None, error))
        return self._take()

    def _add(self, text: bytes) -> None:
        if self.too_long:
            self.too_long = False
            return
        self.count += 1
        self.texts.append(text)
        self.numbers.append(self.count)

    def _add_others(self, text: bytes) -> None:
        """Adds the values of a text that are neither objects nor arrays."""
        for value in _OTHER.findall(text):
            self._add(value)

    def _skip(self) -> None:
        """Rejects a value that is too long, once, and drops its text. An open string stays open."""
        string = self.text[self.scanned :]
        if self.depth == 0:
            self._add_others(self.text[: self.scanned])
            self.text, self.scanned = string, 0
            if len(string) <= self.max_length:
                return
        if not self.too_long:
            self.count += 1
            error = DecodeError(
                f"the value is longer than {size_text(self.max_length)}", code="too-large"
            )
            self.bad.append((self.count, self.text[:1000], error))
        self.too_long = True
        is_escaping = (len(string) - len(string.rstrip(b"\\"))) % 2 == 1
        self.text = b'"' * bool(string) + b"\\" * is_escaping
        self.scanned = 0

    def _take(self) -> Values:
        values = Values(
            pa.array(self.texts, pa.binary()), np.array(self.numbers, np.int64), self.bad
        )
        self.texts, self.numbers, self.bad = [], [], []
        return values

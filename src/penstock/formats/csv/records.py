"""Where CSV records end: a record is a line, or more lines while a quoted field is open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.core.errors import DecodeError, RecordError
from penstock.sdk.kit.arrays import Bytes, Offsets, spans
from penstock.sdk.kit.lines import Lines, too_long_error

_MOST = 1 << 20
Bad = tuple[int, bytes, RecordError]


class Records(NamedTuple):
    """Records, the number of the first line of each, and what is none."""

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    bad: list[Bad]


@dataclass(frozen=True)
class Dialect:
    """How fields are separated and quoted. `quote` and `escape` may be empty."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""

    @cached_property
    def rest(self) -> re.Pattern[bytes]:
        """What follows an opening quote, with the quote that closes it."""
        quote, escape = re.escape(self.quote.encode()), re.escape(self.escape.encode())
        if self.escape and self.escape != self.quote:
            text = rb"((?:[^%b%b]++|%b.|%b%b)*+)%b" % (quote, escape, escape, quote, quote, quote)
        else:
            text = rb"((?:[^%b]++|%b%b)*+)%b" % (quote, quote, quote, quote)
        return re.compile(text, re.DOTALL)

    def fields(self, record: bytes) -> list[tuple[bytes, bool]] | None:
        """The fields, and whether each was quoted; None where a quoted field does not end."""
        rest = self.rest if self.quote else None
        quote, delimiter = self.quote.encode(), self.delimiter.encode()
        found, position = [], 0
        while True:
            quoted = rest is not None and record.startswith(quote, position)
            text = b""
            if rest is not None and quoted:
                match = rest.match(record, position + 1)
                if match is None:
                    return None
                text, position = self._plain(match[1]), match.end()
            end = record.find(delimiter, position)
            text += record[position:] if end < 0 else record[position:end]
            found.append((text, quoted))
            if end < 0:
                return found
            position = end + 1

    def closes(self, line: bytes) -> bool | None:
        """Whether a quoted field that is open before `line` is closed and none open after it.

        None where the text after the closing quote is no delimiter: then the opening one was not
        meant as one.
        """
        match = self.rest.match(line)
        if match is None:
            return False
        if match.end() == len(line):
            return True
        if not line.startswith(self.delimiter.encode(), match.end()):
            return None
        return self.fields(line[match.end() + 1 :]) is not None

    def _plain(self, text: bytes) -> bytes:
        quote, escape = self.quote.encode(), self.escape.encode()
        if escape and escape != quote:
            text = re.sub(re.escape(escape) + rb"(.)", rb"\1", text, flags=re.DOTALL)
        return text.replace(quote + quote, quote)


def read_records(blocks: Iterable[Lines], dialect: Dialect) -> Iterator[Records]:
    """The records among lines. A quote that is not closed costs its line only.

    That is one without an end within 1 MB, or followed by text that does not belong there.
    """
    open_lines: list[tuple[int, bytes]] = []
    for texts, numbers, too_long in blocks:
        bad: list[Bad] = [(number, head, too_long_error()) for number, head in too_long]
        if not open_lines and not may_be_open(*spans(texts), dialect):
            yield Records(*_not_blank(texts, numbers), bad)
            continue
        lines = [*open_lines, *zip(numbers.tolist(), texts.to_pylist(), strict=True)]
        records, open_lines = _join(lines, dialect, bad, last=False)
        yield _records(records, bad)
    if open_lines:
        bad = []
        records, _ = _join(open_lines, dialect, bad, last=True)
        yield _records(records, bad)


def may_be_open(text: Bytes, offsets: Offsets, dialect: Dialect) -> bool:
    """Whether one of the texts has an odd number of quotes."""
    if not dialect.quote:
        return False
    quotes = np.flatnonzero(text == ord(dialect.quote))
    if not len(quotes):
        return False
    counts = np.diff(np.searchsorted(quotes, offsets))
    return bool(dialect.escape) or bool((counts % 2).any())


def _join(
    lines: list[tuple[int, bytes]],
    dialect: Dialect,
    bad: list[Bad],
    last: bool,
) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
    """The records that end among `lines`, and the lines of one that does not yet."""
    records: list[tuple[int, bytes]] = []
    start = 0
    quote = dialect.quote.encode()
    while start < len(lines):
        number, text = lines[start]
        stop = start + 1
        if quote in text and dialect.fields(text) is None:
            try:
                whole = _closed(lines, start, dialect)
                if whole is None and not last:
                    return records, lines[start:]
            except _Unclosed:
                whole = None
            if whole is None:
                bad.append((number, text, DecodeError("a quote is not closed", code="open-quote")))
                start = stop
                continue
            text, stop = whole
        if text:
            records.append((number, text))
        start = stop
    return records, []


def _closed(
    lines: list[tuple[int, bytes]], start: int, dialect: Dialect
) -> tuple[bytes, int] | None:
    """The record that starts at a line, and where the next one does."""
    pieces, size = [lines[start][1]], 0
    for place in range(start + 1, len(lines)):
        line = lines[place][1]
        pieces.append(line)
        size += len(line) + 1
        closes = dialect.closes(line) if dialect.quote.encode() in line else False
        if closes:
            return b"\n".join(pieces), place + 1
        if closes is None or size > _MOST:
            raise _Unclosed
    return None


class _Unclosed(Exception):
    """A quote that is not closed where it could be."""


def _not_blank(
    texts: pa.BinaryArray, numbers: npt.NDArray[np.int64]
) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    sizes = np.diff(np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1])
    if len(texts) == 0 or (sizes > 0).all():
        return texts, numbers
    return texts.filter(pa.array(sizes > 0)), numbers[sizes > 0]


def _records(records: list[tuple[int, bytes]], bad: list[Bad]) -> Records:
    numbers = np.array([number for number, _ in records], np.int64)
    return Records(pa.array([text for _, text in records], pa.binary()), numbers, bad)

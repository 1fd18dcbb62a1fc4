"""Boundaries of CSV records: a record is a line, or several lines within a quoted field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, RecordError
from penstock.formats.csv.lines import LINE_ENDS, Lines
from penstock.sdk.columns.binary_arrays import Bytes, Offsets, values_and_offsets
from penstock.sdk.encoding.lines import too_long_error

_MAX_RECORD_SIZE = 1 << 20
Bad = tuple[int, bytes, RecordError]


class Records(NamedTuple):
    """Records, the number of the first line of each, and invalid records."""

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    bad: list[Bad]


class Line(NamedTuple):
    """A line, its number, and the index of its end in `LINE_ENDS`."""

    number: int
    text: bytes
    end: int


@dataclass(frozen=True)
class Dialect:
    """Separator, quote and escape characters. `quote` and `escape` may be empty."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""

    @cached_property
    def quoted_text(self) -> re.Pattern[bytes]:
        """Pattern of the text after an opening quote, including the closing quote."""
        quote, escape = re.escape(self.quote.encode()), re.escape(self.escape.encode())
        if self.escape and self.escape != self.quote:
            text = rb"((?:[^%b%b]++|%b.|%b%b)*+)%b" % (quote, escape, escape, quote, quote, quote)
        else:
            text = rb"((?:[^%b]++|%b%b)*+)%b" % (quote, quote, quote, quote)
        return re.compile(text, re.DOTALL)

    def fields(self, record: bytes) -> list[tuple[bytes, bool]] | None:
        """Splits a record into fields and whether each is quoted; None for an unclosed quote."""
        quoted_text = self.quoted_text if self.quote else None
        quote, delimiter = self.quote.encode(), self.delimiter.encode()
        fields, position = [], 0
        while True:
            quoted = quoted_text is not None and record.startswith(quote, position)
            text = b""
            if quoted_text is not None and quoted:
                match = quoted_text.match(record, position + 1)
                if match is None:
                    return None
                text, position = self._unescape(match[1]), match.end()
            end = record.find(delimiter, position)
            text += record[position:] if end < 0 else record[position:end]
            fields.append((text, quoted))
            if end < 0:
                return fields
            position = end + 1

    def closes(self, line: bytes) -> bool | None:
        """Returns whether a line closes an open quoted field and opens no other field.

        Returns None if no delimiter follows the closing quote: the opening quote is then text.
        """
        match = self.quoted_text.match(line)
        if match is None:
            return False
        if match.end() == len(line):
            return True
        if not line.startswith(self.delimiter.encode(), match.end()):
            return None
        return self.fields(line[match.end() + 1 :]) is not None

    def _unescape(self, text: bytes) -> bytes:
        quote, escape = self.quote.encode(), self.escape.encode()
        if escape and escape != quote:
            text = re.sub(re.escape(escape) + rb"(.)", rb"\1", text, flags=re.DOTALL)
        return text.replace(quote + quote, quote)


def read_records(blocks: Iterable[Lines], dialect: Dialect, comment: str = "") -> Iterator[Records]:
    """Yields the records in lines. An unclosed quote fails only its line.

    A blank line is an empty record. A line that starts with `comment` is skipped, unless it is
    within a quoted field. A quote is unclosed if no closing quote follows within 1 MB, or if no
    delimiter follows the closing quote.
    """
    open_lines: list[Line] = []
    for texts, numbers, ends, too_long in blocks:
        bad: list[Bad] = [(number, head, too_long_error()) for number, head in too_long]
        if not open_lines and not may_be_open(*values_and_offsets(texts), dialect):
            yield Records(*_remove_comments(texts, numbers, comment), bad)
            continue
        block = zip(numbers.tolist(), texts.to_pylist(), ends.tolist(), strict=True)
        lines = [*open_lines, *(Line(*line) for line in block)]
        records, open_lines = _join(lines, dialect, comment.encode(), bad, last=False)
        yield _records(records, bad)
    if open_lines:
        bad = []
        records, _ = _join(open_lines, dialect, comment.encode(), bad, last=True)
        yield _records(records, bad)


def may_be_open(text: Bytes, offsets: Offsets, dialect: Dialect) -> bool:
    """Returns whether a record may have an unclosed quote."""
    if not dialect.quote:
        return False
    quotes = np.flatnonzero(text == ord(dialect.quote))
    if not len(quotes):
        return False
    counts = np.diff(np.searchsorted(quotes, offsets))
    return bool(dialect.escape) or bool((counts % 2).any())


def _join(
    lines: list[Line],
    dialect: Dialect,
    comment: bytes,
    bad: list[Bad],
    last: bool,
) -> tuple[list[tuple[int, bytes]], list[Line]]:
    """Returns the records that end in `lines`, and the lines of an incomplete record."""
    records: list[tuple[int, bytes]] = []
    start = 0
    quote = dialect.quote.encode()
    while start < len(lines):
        number, text, _ = lines[start]
        stop = start + 1
        if comment and text.startswith(comment):
            start = stop
            continue
        if quote in text and dialect.fields(text) is None:
            try:
                record = _close_record(lines, start, dialect)
                if record is None and not last:
                    return records, lines[start:]
            except _Unclosed:
                record = None
            if record is None:
                bad.append((number, text, DecodeError("a quote is not closed", code="open-quote")))
                start = stop
                continue
            text, stop = record
        records.append((number, text))
        start = stop
    return records, []


def _close_record(lines: list[Line], start: int, dialect: Dialect) -> tuple[bytes, int] | None:
    """Returns the record that starts at a line, and the start of the next record.

    The line ends inside the record are kept.
    """
    parts, size = [lines[start].text], 0
    for index in range(start + 1, len(lines)):
        line = lines[index].text
        parts += [LINE_ENDS[lines[index - 1].end], line]
        size += len(line) + 1
        closes = dialect.closes(line) if dialect.quote.encode() in line else False
        if closes:
            return b"".join(parts), index + 1
        if closes is None or size > _MAX_RECORD_SIZE:
            raise _Unclosed
    return None


class _Unclosed(Exception):
    """The error of an unclosed quote."""


def _remove_comments(
    texts: pa.BinaryArray, numbers: npt.NDArray[np.int64], comment: str
) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    if not comment:
        return texts, numbers
    keep = pc.invert(pc.starts_with(texts, pattern=comment))
    return texts.filter(keep), numbers[np.asarray(keep)]


def remove_blank(
    texts: pa.BinaryArray, numbers: npt.NDArray[np.int64]
) -> tuple[pa.BinaryArray, npt.NDArray[np.int64]]:
    """Returns the records that are not empty, and their numbers."""
    keep = np.diff(values_and_offsets(texts)[1]) > 0
    return (texts, numbers) if keep.all() else (texts.filter(pa.array(keep)), numbers[keep])


def _records(records: list[tuple[int, bytes]], bad: list[Bad]) -> Records:
    numbers = np.array([number for number, _ in records], np.int64)
    return Records(pa.array([text for _, text in records], pa.binary()), numbers, bad)

"""Records of one or more lines, divided by a regular expression of their first lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import DecodeError, EncodeError
from penstock.core.units import size_text
from penstock.sdk.encoding.lines import BLOCK, LINE_START, MAX_LENGTH, read_blocks, split_lines

Bad = tuple[int, bytes, DecodeError]
_NOT_IN_RE2 = ("invalid perl operator: (?", "invalid escape sequence: \\")
_TAILS = (1 << 12, 1 << 16)


class RecordStart:
    """The regular expression of the first lines of records, searched in lines in linear time.

    The syntax is that of RE2. A line or a record longer than `max_length` bytes is too long: of
    such a line the first bytes are searched. Raises ValueError for an invalid expression.
    """

    def __init__(self, pattern: str, max_length: int = MAX_LENGTH) -> None:
        self.pattern = pattern
        self.max_length = max_length
        if not pattern:
            raise ValueError(r"expected a regular expression, such as ^\d{4}-")
        try:
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            if reason.startswith(_NOT_IN_RE2):
                reason += " (the syntax is RE2, without lookaround and back-references)"
            raise ValueError(f"invalid regular expression: {reason}") from None

    def matches(self, lines: pa.BinaryArray) -> npt.NDArray[np.bool_]:
        """Returns whether each line, in UTF-8 without its line end, is the first of a record."""
        if lines.nbytes > self.max_length:
            limit = self.max_length
            texts = [text[:LINE_START] if len(text) > limit else text for text in lines.to_pylist()]
            lines = pa.array(texts, pa.binary())
        found = pc.match_substring_regex(lines.view(pa.string()), self.pattern)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


class LineRecords(NamedTuple):
    """Records without their last line ends, the number of the first line of each, and bad ones."""

    texts: pa.BinaryArray
    numbers: npt.NDArray[np.int64]
    bad: list[Bad]


def read_records(
    file: BinaryIO,
    start: RecordStart,
    *,
    inside: bool = False,
    block: int = BLOCK,
) -> Iterator[LineRecords]:
    """Yields the records of a file of UTF-8, block by block.

    Lines before the first start are a record, or with `inside` the skipped rest of one. Lines are
    joined by `\\n`. A record of empty lines only is skipped. A record that is too long is not kept
    in memory: it is bad, with its first bytes. If reading fails, the record that may be incomplete
    is bad, and the error is raised after it.
    """
    divider = _Divider(start, inside)
    try:
        for text, complete in read_blocks(file, block, start.max_length + 1):
            yield divider.divide(text, complete)
    except Exception:
        yield divider.interrupted()
        raise
    yield divider.end()


def too_long_record_error(max_length: int = MAX_LENGTH) -> DecodeError:
    """Returns the error of a record longer than `max_length` bytes."""
    return DecodeError(f"the record is longer than {size_text(max_length)}", code="too-large")


def last_start(lines: bytes, start: RecordStart, encoding: str = "utf-8") -> int | None:
    """Returns the offset of the last line that starts a record; None without one.

    `lines` are complete lines, in UTF-8 or another encoding of bytes.
    """
    for size in (*_TAILS, len(lines)):
        cut = lines.find(b"\n", len(lines) - size) + 1 if size < len(lines) else 0
        tail = lines[cut:]
        ends = np.flatnonzero(np.frombuffer(tail, np.uint8) == 10)
        texts = split_lines(tail.replace(b"\r\n", b"\n"))
        if encoding == "iso8859-1":
            texts = pc.cast(_latin_1(texts), pa.binary())
        found = np.flatnonzero(start.matches(texts))
        if len(found):
            line = int(found[-1])
            return cut + (int(ends[line - 1]) + 1 if line else 0)
        if not cut:
            return None
    return None


def separate_record_errors(texts: pa.BinaryArray, start: RecordStart) -> dict[int, EncodeError]:
    """Returns the errors of texts, by their index, that would not be read back as one record."""
    if not len(texts):
        return {}
    lines = pc.split_pattern(texts, "\n")
    matches = start.matches(lines.flatten())
    first_lines = np.asarray(lines.offsets)[:-1] - lines.offsets[0].as_py()
    counts = np.add.reduceat(matches, first_lines, dtype=np.int64)
    has_return = np.asarray(pc.match_substring_regex(texts, r"\r(?:\n|\z)"))
    is_long = np.asarray(pc.greater(pc.binary_length(texts), start.max_length))
    is_blank = np.asarray(pc.invert(pc.match_substring_regex(texts, r"[^\n]")))
    problems = {
        "a line of the text ends with \\r, which is a part of the line end": has_return,
        "a later line of the text matches record_start": counts - matches[first_lines] > 0,
        "the first line of the text does not match record_start": ~matches[first_lines],
        "the text has only empty lines": is_blank,
        f"the text is longer than {size_text(start.max_length)}": is_long,
    }
    errors: dict[int, EncodeError] = {}
    for problem, found in problems.items():
        for at in np.flatnonzero(found).tolist():
            errors[at] = EncodeError(problem, code="not-one-record")
    return dict(sorted(errors.items()))


def _latin_1(texts: pa.BinaryArray) -> pa.StringArray:
    return pa.array([text.decode("latin-1") for text in texts.to_pylist()], pa.string())


class _Divider:
    """A division of blocks of lines into records."""

    def __init__(self, start: RecordStart, inside: bool) -> None:
        self._start = start
        self._max_length = start.max_length
        self._line = 1
        self._inside = inside
        self._first_line = 1
        self._parts: list[bytes] = []
        self._size = 0
        self._found: list[tuple[int, bytes]] = []
        self._bad: list[Bad] = []

    def divide(self, text: bytes, complete: bool) -> LineRecords:
        """Returns the records that end in a block of lines, or before a line that is too long."""
        if complete:
            text = text.replace(b"\r\n", b"\n")
            lines = split_lines(text)
            offsets = np.frombuffer(lines.buffers()[1], np.int32)[: len(lines)]
            offsets = offsets + np.arange(len(lines))
        else:
            lines, offsets = pa.array([text], pa.binary()), np.zeros(1, np.int64)
        starts = np.flatnonzero(self._start.matches(lines))
        size = len(text) if complete else self._max_length + 2
        if len(starts):
            first, last = int(offsets[starts[0]]), int(offsets[starts[-1]])
            self._extend(text[:first], first)
            self._close()
            self._add_inner(text, offsets[starts].tolist(), (starts + self._line).tolist())
            self._first_line = self._line + int(starts[-1])
            text, size = text[last:], size - last
        self._extend(text, size)
        self._line += len(lines)
        return self._taken()

    def end(self) -> LineRecords:
        """Returns the last record."""
        self._close()
        return self._taken()

    def interrupted(self) -> LineRecords:
        """Returns the last record as a bad one."""
        self._close()
        for number, text in self._found:
            error = DecodeError(
                "the record may be incomplete: the file is damaged after it", code="cut-off"
            )
            self._bad.append((number, text, error))
        self._found = []
        return self._taken()

    def _add_inner(self, text: bytes, offsets: list[int], numbers: list[int]) -> None:
        for number, (start, stop) in zip(numbers, pairwise(offsets), strict=False):
            self._add(number, text[start : stop - 1], stop - start - 1)

    def _extend(self, text: bytes, size: int) -> None:
        """Extends the last record. Of one that is too long only the first bytes are kept."""
        if self._inside:
            return
        if self._size <= self._max_length + 1:
            self._parts.append(text)
        self._size += size
        if self._size > self._max_length + 1:
            self._parts = [b"".join(self._parts)[:LINE_START]]

    def _close(self) -> None:
        if not self._inside:
            self._add(self._first_line, b"".join(self._parts)[: self._size - 1], self._size - 1)
        self._parts, self._size, self._inside = [], 0, False

    def _add(self, number: int, text: bytes, size: int) -> None:
        if size > self._max_length:
            error = too_long_record_error(self._max_length)
            self._bad.append((number, text[:LINE_START], error))
        elif text.strip(b"\n"):
            self._found.append((number, text))

    def _taken(self) -> LineRecords:
        found, self._found = self._found, []
        bad, self._bad = self._bad, []
        numbers = np.array([number for number, _ in found], np.int64)
        return LineRecords(pa.array([text for _, text in found], pa.binary()), numbers, bad)

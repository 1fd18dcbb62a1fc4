"""Edits of a SQL text, and the edited text with the origin of each character."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.core.errors import OptionError
from penstock.core.text import line_and_column


class Edit(NamedTuple):
    """A replacement of `text[start:end]`. An insertion has `start == end`."""

    start: int
    end: int
    text: str


class DialectError(Exception):
    """A part of a SQL text that has no translation: `text[start:end]`."""

    def __init__(
        self, message: str, start: int, end: int, hint: str | None = None,
        code: str = "unsupported-sql",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message, self.start, self.end, self.hint, self.code = message, start, end, hint, code

    def moved(self, translation: Translation) -> DialectError:
        """Returns the error in the text that a translation came from."""
        start, end = translation.origin(self.start), translation.origin(max(self.end - 1, 0)) + 1
        return DialectError(self.message, start, max(end, start + 1), self.hint, self.code)

    def located(self, text: str, *option: str | int) -> OptionError:
        """Returns the error of the option that holds the text."""
        position = line_and_column(text, self.start)
        return OptionError.of(
            *option, message=self.message, code=self.code, hint=self.hint,
            line_and_column=position,
        )  # fmt: skip


class _Piece(NamedTuple):
    """Consecutive characters of the text: `length` 0 for inserted text, which has one origin."""

    start: int
    origin: int
    verbatim: bool


@dataclass(frozen=True)
class Translation:
    """A text that edits made from another one."""

    text: str
    pieces: tuple[_Piece, ...]

    @classmethod
    def of(cls, text: str) -> Translation:
        """Returns the text without an edit."""
        return cls(text, (_Piece(0, 0, True),))

    def origin(self, index: int) -> int:
        """Returns the index in the first text of a character of this text.

        The origin of an inserted character is the text that it replaces.
        """
        position = bisect_right(self.pieces, index, key=lambda piece: piece.start) - 1
        piece = self.pieces[max(position, 0)]
        return piece.origin + (index - piece.start if piece.verbatim else 0)

    def edit(self, edits: Iterable[Edit]) -> Translation:
        """Returns this text after further edits, which do not overlap."""
        ordered = sorted(edits, key=lambda edit: (edit.start, edit.end))
        if not ordered:
            return self
        parts: list[str] = []
        pieces: list[_Piece] = []
        length = position = 0
        for edit in ordered:
            length = self._copy(position, edit.start, length, parts, pieces)
            if edit.text:
                pieces.append(_Piece(length, self.origin(edit.start), False))
                parts.append(edit.text)
                length += len(edit.text)
            position = edit.end
        self._copy(position, len(self.text), length, parts, pieces)
        return Translation("".join(parts), tuple(pieces or [_Piece(0, 0, True)]))

    def _copy(
        self, start: int, end: int, length: int, parts: list[str], pieces: list[_Piece]
    ) -> int:
        """Appends `text[start:end]` with its origins. Returns the new length."""
        if start >= end:
            return length
        first = max(bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1, 0)
        for piece in self.pieces[first:]:
            if piece.start >= end:
                break
            begin = max(piece.start, start)
            pieces.append(_Piece(length + begin - start, self.origin(begin), piece.verbatim))
        parts.append(self.text[start:end])
        return length + end - start


def without_overlaps(groups: Iterable[Sequence[Edit]]) -> list[Edit]:
    """Returns the edits of the groups that overlap no earlier group."""
    chosen: list[Edit] = []
    for group in groups:
        if not any(_overlap(edit, other) for edit in group for other in chosen):
            chosen += group
    return chosen


def _overlap(edit: Edit, other: Edit) -> bool:
    if edit.start == edit.end and other.start == other.end:
        return edit.start == other.start
    return edit.start < other.end and other.start < edit.end

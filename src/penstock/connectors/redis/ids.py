"""Ids of a stream's entries, which are positions in it."""

from __future__ import annotations

from typing import NamedTuple, Self

_LARGEST = 2**64 - 1


class Id(NamedTuple):
    """The milliseconds of an entry's time, and its number among those of the same."""

    milliseconds: int
    number: int

    @classmethod
    def of(cls, text: str | bytes) -> Self:
        """An id from its text, as in `1700000000000-0`. Raises ValueError."""
        first, _, second = (text if isinstance(text, str) else text.decode()).partition("-")
        found = cls(int(first), int(second or 0))
        if not all(0 <= each <= _LARGEST for each in found):
            raise ValueError("not an id")
        return found

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.number}"

    @property
    def position(self) -> int:
        """The number, as one that has a sign and takes no more room."""
        return self.number if self.number < 2**63 else self.number - 2**64

    @property
    def before(self) -> Id:
        """The one before it."""
        if self.number:
            return Id(self.milliseconds, self.number - 1)
        return Id(self.milliseconds - 1, _LARGEST) if self.milliseconds else self


BEGIN = Id(0, 0)
"""Before all entries: no entry has this id."""

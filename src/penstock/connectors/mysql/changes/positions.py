"""Positions in the binary log, which is a sequence of files."""

from __future__ import annotations

from dataclasses import dataclass

_OFFSET_BITS = 32


@dataclass(frozen=True)
class LogFile:
    """A file of the log. Files of one name differ in their server and the time of their creation.

    `created` is 0 if both are unknown.
    """

    name: str
    server: int = 0
    created: int = 0

    @classmethod
    def parse(cls, text: str) -> LogFile:
        """Parses the text of a file."""
        server, created, name = text.split(":", 2)
        return cls(name, int(server), int(created))

    def __str__(self) -> str:
        return f"{self.server}:{self.created}:{self.name}"

    @property
    def number(self) -> int:
        """The number at the end of the name."""
        return int(self.name.rpartition(".")[2])

    def at(self, offset: int) -> int:
        """Returns a position as a number that grows along the log."""
        return self.number << _OFFSET_BITS | min(offset, (1 << _OFFSET_BITS) - 1)

    def text(self, offset: int) -> str:
        """Returns a position as `mysql-bin.000007:1234`."""
        return f"{self.name}:{offset}"

    def is_other(self, found: LogFile) -> bool:
        """Returns whether the server has another file under the name of this one."""
        known = self.created and (self.server, self.created) != (found.server, found.created)
        return bool(known)


def file_number(position: int) -> int:
    """Returns the number of the file of a position."""
    return position >> _OFFSET_BITS


def file_offset(position: int) -> int:
    """Returns the place of a position in its file."""
    return position & (1 << _OFFSET_BITS) - 1

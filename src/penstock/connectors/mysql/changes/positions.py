"""Positions in the binary log, which is a sequence of files."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from penstock.connectors.mysql.changes.gtids import Gtids

_OFFSET_BITS = 32


@dataclass(frozen=True)
class LogFile:
    """A file of the log. Files of one name differ in their server and the time of their creation.

    `created` is 0 if it is not known, and `server` 0 if both are unknown. `shift` is added to the
    number of the file: positions of a server are greater than those of the server before it.
    """

    name: str
    server: int = 0
    created: int = 0
    shift: int = 0

    @property
    def number(self) -> int:
        """The number at the end of the name, shifted."""
        return self.shift + int(self.name.rpartition(".")[2] or 0)

    def at(self, offset: int) -> int:
        """Returns a position as a number that grows along the log."""
        return self.number << _OFFSET_BITS | min(offset, (1 << _OFFSET_BITS) - 1)

    def text(self, offset: int) -> str:
        """Returns a position as `mysql-bin.000007:1234`."""
        return f"{self.name}:{offset}"

    def shifted(self, shift: int) -> LogFile:
        """Returns the file with another shift."""
        return replace(self, shift=shift)

    def is_other(self, found: LogFile) -> bool:
        """Returns whether the server has another file under the name of this one."""
        known = self.created and (self.server, self.created) != (found.server, found.created)
        return bool(known)


@dataclass(frozen=True)
class LogPlace:
    """A file, and the transactions before a position in it; None if they are not known.

    A log of which no position is known yet has a file without a name.
    """

    file: LogFile
    gtids: Gtids | None = None

    @classmethod
    def parse(cls, text: str) -> LogPlace:
        """Parses the text of a place, also that of earlier versions, without GTIDs."""
        if not text.startswith("{"):
            server, created, name = text.split(":", 2)
            return cls(LogFile(name, int(server), int(created)))
        fields = json.loads(text)
        gtids = fields.pop("gtids")
        return cls(LogFile(**fields), None if gtids is None else Gtids.parse(gtids))

    def __str__(self) -> str:
        gtids = None if self.gtids is None else str(self.gtids)
        return json.dumps({**vars(self.file), "gtids": gtids})


def file_number(position: int) -> int:
    """Returns the number of the file of a position."""
    return position >> _OFFSET_BITS


def file_offset(position: int) -> int:
    """Returns the place of a position in its file."""
    return position & (1 << _OFFSET_BITS) - 1

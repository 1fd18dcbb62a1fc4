"""Global transaction identifiers (GTIDs), by which a position is found in the log of any server.

MariaDB has the last `domain-server-number` of each domain, and MySQL the numbers of each source, as
`uuid:1-7:9`.

Sources: https://mariadb.com/kb/en/gtid/ and
https://dev.mysql.com/doc/refman/8.4/en/replication-gtids-concepts.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

Intervals = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Gtids:
    """The transactions before a position.

    `numbers` has those of a source of MySQL as intervals with both ends, and of a domain of MariaDB
    the last one, which need not be the greatest. `servers` has the servers of these last ones.
    """

    numbers: Mapping[str, Intervals]
    servers: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Gtids:
        """Parses the GTIDs of a server. Raises ValueError for another form."""
        numbers: dict[str, Intervals] = {}
        servers = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            if ":" in part:
                source, *ranges = part.split(":")
                numbers[source.lower()] = _merged(map(_interval, ranges))
            else:
                domain, server, number = part.split("-")
                numbers[domain], servers[domain] = (_interval(number),), server
        return cls(numbers, servers)

    def __str__(self) -> str:
        ends = self.ends
        return ",".join(
            ends[name] if name in ends else ":".join((name, *map(_text, intervals)))
            for name, intervals in self.numbers.items()
        )

    def includes(self, gtid: str) -> bool:
        """Returns whether a transaction of MySQL is one of these."""
        name, _, number = parts_of(gtid)
        return any(first <= number <= last for first, last in self.numbers.get(name, ()))

    def has_all(self, other: Gtids) -> bool:
        """Returns whether all transactions of another set of MySQL are some of these."""
        return Gtids.common([self, other]).numbers == other.numbers

    def after(self, gtid: str) -> Gtids:
        """Returns the transactions before a position that is after one more transaction."""
        name, server, number = parts_of(gtid)
        if server is None:
            known = self.numbers.get(name, ())
            added = _merged([*known, (number, number)])
            return Gtids({**self.numbers, name: added}, self.servers)
        last = ((number, number),)
        return Gtids({**self.numbers, name: last}, {**self.servers, name: server})

    @property
    def ends(self) -> dict[str, str]:
        """The last transaction of each domain of MariaDB."""
        return {
            name: f"{name}-{server}-{self.numbers[name][-1][1]}"
            for name, server in self.servers.items()
        }

    @staticmethod
    def common(several: Sequence[Gtids]) -> Gtids:
        """Returns the transactions that are in all of several sets of MySQL."""
        return reduce(_common, several)


def _common(first: Gtids, second: Gtids) -> Gtids:
    numbers: dict[str, Intervals] = {}
    for name, intervals in first.numbers.items():
        found = _merged(
            (max(a, c), min(b, d))
            for a, b in intervals
            for c, d in second.numbers.get(name, ())
            if max(a, c) <= min(b, d)
        )
        if found:
            numbers[name] = found
    return Gtids(numbers, {})


def parts_of(gtid: str) -> tuple[str, str | None, int]:
    """Returns the domain or the source, the server of MariaDB, and the number."""
    if ":" in gtid:
        source, _, number = gtid.partition(":")
        return source.lower(), None, int(number)
    domain, server, number = gtid.split("-")
    return domain, server, int(number)


def _interval(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _text(interval: tuple[int, int]) -> str:
    first, last = interval
    return str(first) if first == last else f"{first}-{last}"


def _merged(intervals: Iterable[tuple[int, int]]) -> Intervals:
    """Returns intervals in order, of which none touches the next one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)

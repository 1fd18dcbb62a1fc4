"""Telling sources what has been written: once a batch is in the commit log of all their queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from penstock.core.errors import ConnectError
from penstock.core.log import Log
from penstock.engine.source import without_mark
from penstock.plan.model import Plan
from penstock.runtime.state import StateDirectory
from penstock.sdk import Offset, ReplayableSource


class Acknowledger:
    """Calls `commit` of each source, on the driver, with the position that all queries have passed.

    A system that does not answer is told the next time: nothing depends on it but itself.
    """

    def __init__(self, plan: Plan, state: StateDirectory, log: Log) -> None:
        self._state, self._log = state, log
        self._sources = {
            node.name: node.source
            for node in plan.of("source")
            if not node.static and isinstance(node.source, ReplayableSource)
        }
        self._readers = {
            name: [query.name for query in plan.queries if name in query.within]
            for name in self._sources
        }
        self._committed: dict[str, tuple[int, dict[str, Offset]]] = {}
        self._told: dict[str, Offset] = {}

    def settle(self) -> None:
        """Tells every source how far it has come since the last time."""
        for name, position in self._passed():
            if self._told.get(name) != position:
                try:
                    self._sources[name].commit(position)
                except ConnectError as error:
                    self._log.warning("not acknowledged", source=name, error=error.message)
                else:
                    self._told[name] = position

    def close(self) -> None:
        """Lets go of what the sources hold on the driver."""
        for source in self._sources.values():
            source.close()

    def _passed(self) -> Iterator[tuple[str, Offset]]:
        for name, queries in self._readers.items():
            positions = [self._positions(query).get(name) for query in queries]
            known = [each for each in positions if each is not None]
            if known and len(known) == len(positions):
                passed = known[0]
                for other in known[1:]:
                    passed = self._sources[name].earlier(passed, other)
                yield name, passed

    def _positions(self, query: str) -> dict[str, Offset]:
        """The position of each source after the query's last committed batch."""
        number = self._state.committed(query)
        if number is None:
            return {}
        if self._committed.get(query, (None,))[0] != number:
            self._committed[query] = number, _at(self._state, query, number)
        return self._committed[query][1]


def committed_positions(state: StateDirectory, query: str) -> dict[str, Offset]:
    """The position of each source after a query's last committed batch; empty before the first."""
    number = state.committed(query)
    return {} if number is None else _at(state, query, number)


def _at(state: StateDirectory, query: str, number: int) -> dict[str, Offset]:
    return dict(_parsed((state.checkpoint(query) / "offsets" / str(number)).read_text("utf-8")))


def _parsed(text: str) -> Iterator[tuple[str, Offset]]:
    """The positions of Spark's offset log, version 2: two lines, then `NAME:JSON` for each."""
    for line in text.splitlines()[2:]:
        name, _, position = line.partition(":")
        offset: dict[str, Any] = json.loads(position)
        if offset:
            yield name, without_mark(offset)

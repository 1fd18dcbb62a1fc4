"""Acknowledgement of sources: offsets that all queries have committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from penstock.core.errors import ConnectError
from penstock.core.log import Log
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.sources.source_readers import source_offset
from penstock.plan.model import Plan
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Offset, ReplayableSource


class Acknowledger:
    """The acknowledgement of sources: `commit` with the offset that all queries have committed.

    The commit log is on disk before a source is acknowledged.
    Runs on the driver. A failed call is logged, and the next offset is committed again.
    """

    def __init__(self, plan: Plan, state: StateDirectory, log: Log) -> None:
        self._state, self._log = state, log
        self._sources = {
            node.name: node.source
            for node in plan.of("source")
            if not node.static and isinstance(node.source, ReplayableSource)
        }
        self._readers = {
            name: [query.name for query in plan.queries if name in query.stream_nodes]
            for name in self._sources
        }
        self._committed: dict[str, tuple[int, dict[str, Offset]]] = {}
        self._acknowledged: dict[str, Offset] = {}

    def acknowledge(self) -> None:
        """Commits the offsets that have advanced since the last call."""
        for name, offset in self._common_offsets():
            if self._acknowledged.get(name) != offset:
                try:
                    self._sources[name].commit(offset)
                except ConnectError as error:
                    self._log.warning("acknowledgement failed", source=name, error=error.message)
                else:
                    self._acknowledged[name] = offset

    def pending(self) -> dict[str, int]:
        """Returns the records of each source in batches that not all queries have committed.

        A source that cannot be reached has 0.
        """
        counts = dict.fromkeys(self._sources, 0)
        for query in {query for queries in self._readers.values() for query in queries}:
            committed, planned = self._state.committed(query), self._state.planned(query)
            if planned is None or (committed is not None and planned <= committed):
                continue
            starts: Mapping[str, Offset] = self._query_offsets(query)
            if committed is None:
                starts = StartOffsets(self._state.checkpoint(query)).read()
            ends = batch_offsets(self._state, query, planned)
            for name in starts.keys() & ends.keys() & counts.keys():
                with suppress(ConnectError):
                    lag = self._sources[name].lag(starts[name], ends[name])
                    counts[name] = max(counts[name], lag or 0)
        return counts

    def close(self) -> None:
        """Closes the sources on the driver."""
        for source in self._sources.values():
            source.close()

    def _common_offsets(self) -> Iterator[tuple[str, Offset]]:
        for name, queries in self._readers.items():
            offsets = [self._query_offsets(query).get(name) for query in queries]
            known = [offset for offset in offsets if offset is not None]
            if known and len(known) == len(offsets):
                common = known[0]
                for offset in known[1:]:
                    common = self._sources[name].min_offset(common, offset)
                yield name, common

    def _query_offsets(self, query: str) -> dict[str, Offset]:
        number = self._state.committed(query)
        if number is None:
            return {}
        known, offsets = self._committed.get(query, (None, {}))
        if known != number and self._make_durable(query, number):
            offsets = batch_offsets(self._state, query, number)
            self._committed[query] = number, offsets
        return offsets

    def _make_durable(self, query: str, number: int) -> bool:
        """Makes the entry of a batch in the commit log durable. Returns False after a failure."""
        checkpoint = self._state.checkpoint(query)
        OffsetLog(checkpoint).sync_committed(number)
        try:
            logs = (checkpoint / "offsets", checkpoint / "commits")
            self._state.storage.sync(*(log / str(number) for log in logs))
        except ConnectError as error:
            self._log.warning("commit not stored yet", query=query, error=error.message)
            return False
        return True


def committed_offsets(state: StateDirectory, query: str) -> dict[str, Offset]:
    """Returns the end offset of each source in a query's last committed batch; {} without one."""
    number = state.committed(query)
    return {} if number is None else batch_offsets(state, query, number)


def batch_offsets(state: StateDirectory, query: str, number: int) -> dict[str, Offset]:
    """Returns the end offset of each source in a planned batch of a query."""
    offsets = OffsetLog(state.checkpoint(query)).end_offsets(number)
    return {name: source_offset(offset) for name, offset in offsets.items()}

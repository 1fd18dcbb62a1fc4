"""Starts of sinks within existing queries: the offsets from which a sink has all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.engine.sinks.sink_rows import is_ordered
from penstock.plan import comparison
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.runtime.acknowledge import committed_offsets
from penstock.runtime.backfills.past_batches import PastBatches, read_past_batches
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Offset

FILE = "sinks.json"


@dataclass(frozen=True)
class SinkStart:
    """The start of a sink within an existing query.

    `since` are the offsets of the sources that the query had committed. `filled` is set after a
    backfill of the rows before. `returned` marks a sink that an earlier plan had, too. If the rows
    depend on the batches before the start, `batches` and `closed` are their `PastBatches`.
    """

    query: str
    since: Mapping[str, Offset]
    filled: bool = False
    returned: bool = False
    batches: Sequence[Any] | None = None
    closed: bool = False

    @property
    def past_batches(self) -> PastBatches | None:
        """The batches before the start; None if they are not recorded."""
        return None if self.batches is None else PastBatches.parse(self.batches, self.closed)


def read_starts(state: StateDirectory) -> dict[str, SinkStart]:
    """Returns the recorded starts by sink."""
    return {name: SinkStart(**entry) for name, entry in (state.read(FILE) or {}).items()}


def write_starts(state: StateDirectory, starts: Mapping[str, SinkStart]) -> None:
    """Replaces the recorded starts."""
    if starts != read_starts(state):
        state.write(FILE, {name: asdict(start) for name, start in starts.items()})


def find_starts(plan: Plan, state: StateDirectory) -> dict[str, SinkStart]:
    """Returns the recorded starts, and those of the sinks that are new since the last run.

    A sink that the plan no longer has keeps an entry. A sink of a query without a committed batch
    lacks no rows and has no entry.
    """
    starts = read_starts(state)
    before = state.read("plan.json")
    if before is None:
        return starts
    current = {name: query.name for query in plan.queries for name in query.sinks}
    for name, query in before["sinks"].items():
        if name not in current and name not in starts:
            starts[name] = SinkStart(query, {}, filled=True)
    for name, query in comparison.new_sinks(before, {"sinks": current}).items():
        since = committed_offsets(state, query)
        known = starts.get(name)
        if since and (known is None or (known.query, known.since) != (query, since)):
            returned = known is not None or name in before["sinks"]
            start = SinkStart(query, since, returned=returned)
            starts[name] = _with_batches(start, sink_query(plan, name), plan, state)
    return starts


def _with_batches(start: SinkStart, query: Query, plan: Plan, state: StateDirectory) -> SinkStart:
    """Returns a start with its batches, if the rows of the query depend on earlier rows.

    While a run closes the windows, it is unknown which of them are written.
    """
    if not depends_on_batches(plan, query):
        return start
    past = read_past_batches(state, query)
    if past.closed and not state.read("complete"):
        return start
    batches = [list(batch) for batch in past.batches]
    return replace(start, batches=batches, closed=past.closed)


def sink_query(plan: Plan, sink: str) -> Query:
    """Returns the query of a sink."""
    return next(query for query in plan.queries if sink in query.sinks)


def depends_on_batches(plan: Plan, query: Query) -> bool:
    """Returns whether the rows of a query depend on rows of earlier batches, or on all input."""
    if query.whole_input or query.updating:
        return True
    return any(plan.nodes[name].stateful for name in query.stream_nodes)


def overwrites(sink: Node) -> bool:
    """Returns whether rows that are written again replace the rows of before."""
    return sink.sink.mode != "append" or is_ordered(sink.sink)


def backfill_command(plan: Plan, sink: str) -> str:
    """Returns the command for the backfill of a sink."""
    return f"penstock run {' '.join(plan.pipeline.files)} --backfill {sink}"

"""Backfill of a sink: the rows that its query has read before the sink has started.

A backfill is a query of its own, with a checkpoint and state below the state directory of the
pipeline. A repeated backfill continues this query, so that a sink recognises repeated batches.
Where rows depend on earlier rows, the backfill repeats the batches of the pipeline's query from the
same start, so that the same rows are late and the same windows are open at the end.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from penstock.core.errors import StateError, UserError
from penstock.core.files.durable import create_directory_durably
from penstock.core.text import did_you_mean
from penstock.engine.updating.kept_tables import TABLES
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.runtime.acknowledge import committed_offsets
from penstock.runtime.backfills.past_batches import PastBatches, read_past_batches
from penstock.runtime.backfills.past_plan import (
    backfill_query,
    initial_offsets,
    past_plan,
    past_sources,
    stream_sources,
)
from penstock.runtime.backfills.sink_starts import (
    SinkStart,
    depends_on_batches,
    find_starts,
    overwrites,
    read_starts,
    sink_query,
    write_starts,
)
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.files import writing

DIRECTORY = "backfill"
PROGRESS = "range.json"


class BackfillState(StateDirectory):
    """The state of a backfill, in the state directory of its pipeline.

    Dead letters are those of the pipeline.
    """

    def __init__(self, pipeline: StateDirectory, sink: str) -> None:
        super().__init__(pipeline.root / DIRECTORY / sink, pipeline.storage)
        self._pipeline = pipeline

    @property
    def dead_letters(self) -> Path:
        return self._pipeline.dead_letters


@dataclass(frozen=True)
class Backfill:
    """The backfill of a sink: a plan with one query and sources that end, and its state.

    `until` is `complete` if the query closes its windows or is computed from the whole input.
    """

    plan: Plan
    state: BackfillState
    sink: str
    start: SinkStart
    until: Literal["caught_up", "complete"] = "caught_up"

    def complete(self, pipeline: StateDirectory) -> None:
        """Records that the sink has the rows before its start, and removes the state."""
        starts = {**read_starts(pipeline), self.sink: replace(self.start, filled=True)}
        write_starts(pipeline, starts)
        _remove(self.state)


def check_backfill(plan: Plan, name: str) -> None:
    """Raises UserError if a node cannot be backfilled, whatever its state."""
    sinks = [node.name for node in plan.of("sink")]
    if name not in sinks:
        known = name in plan.nodes
        raise UserError(
            f'"{name}" is not a sink' if known else f'there is no sink "{name}"',
            code="unknown-node",
            hint=did_you_mean(name, sinks) or f"Name one of the sinks: {', '.join(sinks)}.",
        )
    query, sink = sink_query(plan, name), plan.nodes[name]
    for source in stream_sources(plan, query):
        if source.source.reads_once():
            raise UserError(
                f"{sink.label} cannot be backfilled: {source.label} removes records after reading",
                code="read-twice",
                where=sink.where,
                hint="Backfill from sources that keep their records.",
            )


def list_backfillable(plan: Plan) -> list[str]:
    """Returns the sinks that can be backfilled, whatever their state."""
    sinks = []
    for node in plan.of("sink"):
        with suppress(UserError):
            check_backfill(plan, node.name)
            sinks.append(node.name)
    return sinks


def prepare_backfill(plan: Plan, state: StateDirectory, name: str) -> Backfill:
    """Returns the backfill of a sink, or the continuation of an unfinished one.

    A sink that appends receives the rows before its start. A sink that overwrites receives all rows
    that its query has committed, because older rows must not replace newer ones. The schemas of the
    plan must be resolved and the state locked. Raises UserError if the sink lacks no rows.
    """
    check_backfill(plan, name)
    query, sink = sink_query(plan, name), plan.nodes[name]
    start = _find_start(plan, state, sink, query)
    past = _past_batches(plan, state, query, sink, start)
    if overwrites(sink):
        ends = past.batches[-1][1] if past else committed_offsets(state, query.name)
    else:
        ends = start.since
    own = BackfillState(state, name)
    progress = own.read(PROGRESS)
    if progress is None:
        _remove(own)
        begins = initial_offsets(plan, state, query, ends)
        if all(begins[source] == end for source, end in ends.items()):
            raise _no_rows(
                sink, "its sources have no rows before the offset at which it starts",
                "Check start: of the sources; --set sources.NAME.start=earliest reads all records.",
            )  # fmt: skip
        with writing(own.root):
            create_directory_durably(own.checkpoints)
            _copy_tables(state.checkpoint(query.name), own.checkpoint(backfill_query(name)))
    else:
        begins = progress["start"]
        if progress["query"] != query.name or not begins.keys() >= ends.keys():
            raise StateError(
                f"{sink.label} has an unfinished backfill from other sources",
                code="changed-plan",
                where=sink.where,
                hint="Undo the change of the pipeline, or rename the sink.",
            )
        if past is not None:
            past = past.after(PastBatches.parse(progress["batches"]))
    batches = None if past is None else past.batches
    own.write(PROGRESS, {"query": query.name, "start": begins, "batches": batches})
    sources = past_sources(plan, query, begins, ends, past)
    complete = query.whole_input or (past is not None and past.closed)
    until: Literal["caught_up", "complete"] = "complete" if complete else "caught_up"
    return Backfill(past_plan(plan, query, name, sources, past), own, name, start, until)


def _past_batches(
    plan: Plan, state: StateDirectory, query: Query, sink: Node, start: SinkStart
) -> PastBatches | None:
    """Returns the batches that a backfill repeats; None if rows do not depend on earlier rows.

    Raises UserError if they are unknown.
    """
    if not depends_on_batches(plan, query):
        return None
    past = read_past_batches(state, query) if overwrites(sink) else start.past_batches
    if past is None or not past.sufficient:
        raise UserError(
            f'{sink.label} cannot be backfilled: its rows come from "{query.name}", which keeps '
            "state, and the batches before the start of the sink are not recorded",
            code="stateful-backfill",
            where=sink.where,
            hint=f'Give the sink a copy of "{query.name}" under another name: a new query starts '
            "at the beginning of its sources.",
        )
    if past.closed and not state.read("complete"):
        raise UserError(
            f"{sink.label} cannot be backfilled: the windows of the last run are not all closed",
            code="stateful-backfill",
            where=sink.where,
            hint="Run the pipeline without --backfill first.",
        )
    return past


def _find_start(plan: Plan, state: StateDirectory, sink: Node, query: Query) -> SinkStart:
    """Returns the start of a sink. Raises UserError if the sink lacks no rows."""
    committed = committed_offsets(state, query.name)
    if not committed:
        raise _no_rows(
            sink, "its query has not read anything", "Run the pipeline without --backfill."
        )
    start = find_starts(plan, state).get(sink.name)
    if overwrites(sink):
        return SinkStart(query.name, committed) if start is None else start
    if start is None or start.query != query.name:
        raise _no_rows(
            sink, "it has the rows of its query from the start, and would append them again",
            "Rename the sink and give it another target to write all rows.",
        )  # fmt: skip
    if start.filled or start.returned:
        reason = "its backfill is complete" if start.filled else "it was removed and added again"
        raise _no_rows(
            sink, f"{reason}, and it would append rows again",
            "Rename the sink and give it another target to write all rows.",
        )  # fmt: skip
    return start


def _no_rows(sink: Node, reason: str, hint: str) -> UserError:
    return UserError(
        f"{sink.label} cannot be backfilled: {reason}",
        code="nothing-to-backfill",
        where=sink.where,
        hint=hint,
    )


def _copy_tables(checkpoint: Path, own: Path) -> None:
    """Copies the static tables that are kept with the state of a query to that of a backfill."""
    if (checkpoint / TABLES).exists():
        shutil.copytree(checkpoint / TABLES, own / TABLES)


def _remove(state: BackfillState) -> None:
    """Removes the state of a backfill. The range is removed first: without it there is no state."""
    with writing(state.root):
        (state.root / PROGRESS).unlink(missing_ok=True)
        shutil.rmtree(state.root, ignore_errors=True)

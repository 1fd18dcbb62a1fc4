"""Compatibility of a state directory with a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.core.errors import StateError
from penstock.plan import comparison, fingerprint
from penstock.plan.model import Plan
from penstock.plan.node_changes import Change
from penstock.runtime.backfills.sink_starts import (
    SinkStart,
    backfill_command,
    find_starts,
    overwrites,
    sink_query,
)
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.pipeline import open_state
from penstock.runtime.state.primary_keys import apply_stored_keys
from penstock.runtime.state.schemas import apply_pins

if TYPE_CHECKING:
    from penstock.engine.build import Builder


def check_complete(state: StateDirectory) -> None:
    """Raises StateError for the state of a bounded pipeline whose windows are closed."""
    complete = state.read("complete")
    if complete and complete["windows"]:
        raise StateError(
            f"this pipeline is complete since {complete['at']}: its input ended, and its windows "
            "and final rows are written, so no rows can be added",
            code="complete",
            hint="Reset the state with penstock run --fresh. For the rows of a new sink run with "
            "--backfill SINK.",
        )


def check_changes(plan: Plan, state: StateDirectory) -> list[Change]:
    """Returns the differences between a plan and the plan of the last run.

    The columns of the plan must be known. Raises StateError for an incompatible difference.
    """
    changes = find_changes(plan, state)
    check_compatible(changes)
    return changes


def find_changes(plan: Plan, state: StateDirectory) -> list[Change]:
    """Returns the differences between a plan and the plan of the last run, with their effects.

    The columns of the plan must be known.
    """
    previous = state.read("plan.json")
    if previous is None:
        return []
    previous = fingerprint.relative_paths(previous, fingerprint.project(plan))
    current = fingerprint.comparable(plan, previous, state.key())
    changes = comparison.compare(previous, current)
    if any(change.effect == "incompatible" for change in changes):
        return changes
    starts = find_starts(plan, state)
    new = comparison.new_sinks(previous, current)
    return [*changes, *(_new_sink(plan, name, starts[name]) for name in new if name in starts)]


def check_compatible(changes: Sequence[Change]) -> None:
    """Raises StateError if one of the changes does not fit the state."""
    if any(change.effect == "incompatible" for change in changes):
        raise StateError(
            "the pipeline has changed in a way that its state does not support",
            code="changed-plan",
            detail="\n".join(str(change) for change in changes),
            hint="Undo the change, rename the changed node, or reset the state with --fresh.",
        )


def find_all_changes(
    plan: Plan, columns: Mapping[str, Sequence[str]] | None = None, builder: Builder | None = None
) -> list[Change]:
    """Returns the differences to the plan of the last run, and those of states. Writes nothing.

    `columns` are the columns of each sink. Without a builder the columns of states are not
    compared. Returns nothing if the columns of a source are unknown, or if the state belongs to
    another pipeline.
    """
    try:
        state = open_state(plan)
    except StateError:
        return []
    keyed = apply_stored_keys(plan, state)
    if keyed is None or not apply_pins(keyed, state):
        return []
    plan = keyed
    changes = find_changes(plan, state)
    if not changes or any(change.effect == "incompatible" for change in changes):
        return changes
    try:
        if builder is not None:
            check_states(builder, state)
    except StateError as error:
        reason = ", ".join((error.detail or error.message).splitlines())
        return [*changes, Change(error.message, "incompatible", reason)]
    return [*changes, *find_new_columns(plan, columns or {}, state)]


def check_states(builder: Builder, state: StateDirectory) -> None:
    """Raises StateError if the columns of a state do not fit the operators of a changed plan.

    Spark finds the columns of operators. Reads no rows.
    """
    from penstock.engine.checks.state_check import check_state

    for query in builder.plan.queries:
        if state.committed(query.name) is not None:
            check_state(builder, query, state.checkpoint(query.name))


def find_new_columns(
    plan: Plan, columns: Mapping[str, Sequence[str]], state: StateDirectory
) -> list[Change]:
    """Returns the new columns in the rows of sinks whose query has written rows without them.

    `columns` are the columns of each sink.
    """
    previous = state.read("plan.json")
    if previous is None:
        return []
    return [
        _new_columns(plan, name, new)
        for name, new in comparison.new_columns(previous, {"columns": columns}).items()
        if state.committed(sink_query(plan, name).name) is not None
    ]


def _new_sink(plan: Plan, name: str, start: SinkStart) -> Change:
    text = f'new in query "{start.query}", starts with the next batch'
    if start.filled:
        return Change(f'sink "{name}"', "compatible", f"{text}, after its backfill")
    return Change(f'sink "{name}"', "compatible", f"{text}; {_earlier_rows(plan, name, start)}")


def _earlier_rows(plan: Plan, name: str, start: SinkStart) -> str:
    """Returns the way to write the rows before the start of a sink."""
    if start.returned and not overwrites(plan.nodes[name]):
        return "rows since it was removed are not written"
    return f"to write the rows before: {backfill_command(plan, name)}"


def _new_columns(plan: Plan, name: str, columns: Sequence[str]) -> Change:
    names = ", ".join(f'"{column}"' for column in columns)
    noun = "new columns" if len(columns) > 1 else "new column"
    text = f"{noun} {names}, in the rows of the next batch and later ones"
    if overwrites(plan.nodes[name]):
        text += f"; to write the rows before again: {backfill_command(plan, name)}"
    else:
        text += "; rows before are not written again"
    return Change(f'sink "{name}"', "compatible", text)

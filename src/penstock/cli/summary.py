"""The summary of a run: its ending and its dead letters."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.metrics_table import format_failure, format_watermark
from penstock.core.errors import OutputClosed, PenstockError
from penstock.core.text import plural

if TYPE_CHECKING:
    from penstock.observe.snapshot import Snapshot
    from penstock.plan.model import Plan
    from penstock.runtime.outcome import Outcome

_OVERRIDE = "--set"
_STATE = (("name",), ("runtime", "state"))
"""The places of the options that choose the state directory."""
_ENDINGS = {"complete": "is complete", "caught_up": "has caught up", "failed": "failed"}


def describe_ending(outcome: Outcome) -> str:
    """Returns `is complete`, `has caught up`, `stopped (Ctrl-C)` or `failed`."""
    if outcome.ending == "stopped":
        return f"stopped ({outcome.reason})" if outcome.reason else "stopped"
    return _ENDINGS[outcome.ending]


def reported_errors(outcome: Outcome) -> dict[str, PenstockError]:
    """Returns the errors of a run by query, without the end of the reader of the output."""
    return {
        name: error for name, error in outcome.errors.items() if not isinstance(error, OutputClosed)
    }


def describe_unwritten(plan: Plan, outcome: Outcome, numbers: Snapshot) -> list[str]:
    """Returns a line for each query with rows that a run leaves unwritten.

    A run that has caught up leaves open windows, a stopped one the batch of a sink that failed.
    """
    if outcome.ending == "stopped":
        return [
            f"{name}: a batch is not completely written, the next run repeats it; "
            f"{format_failure(query)}"
            for name, query in numbers["queries"].items()
            if query["state"] == "ended" and query["error"] is not None
        ]
    if outcome.ending != "caught_up":
        return []
    lines = []
    for query in plan.queries:
        execution = numbers["queries"].get(query.name)
        count = execution["open_windows"] if execution is not None else None
        if query.whole_input:
            lines.append(
                f"{query.name}: its final rows are written at the end of the input; run without "
                "--until-caught-up"
            )
        elif count and query.output_mode == "append":
            marks = [mark for name, mark in numbers["watermarks"].items() if name == query.name]
            (mark,) = format_watermark(marks) or ["no watermark yet"]
            lines.append(f"{query.name}: {plural(count, 'open window')} not yet written; {mark}")
    return lines


def dead_letter_hint(plan: Plan, count: int, files: Sequence[Path]) -> str | None:
    """Returns the location of the dead letters of a run; None without dead letters."""
    if not count:
        return None
    dead_letters = plural(count, "dead letter")
    if plan.dead_letter is not None:
        return f"{dead_letters}, written to the dead_letter sink (type: {plan.dead_letter.type})"
    words = [*map(str, files), *_options_of_state(plan)]
    return f"{dead_letters}; run: penstock dead list {shlex.join(words)}"


def _options_of_state(plan: Plan) -> Iterator[str]:
    """Yields the options `--set` of a run that chose its state directory."""
    source_map = plan.pipeline.source_map
    for route in _STATE:
        location = source_map.value(route) if source_map.find(route) is not None else None
        if location is not None and location.file == _OVERRIDE:
            yield from (_OVERRIDE, location.text)

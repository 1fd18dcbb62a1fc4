"""Age of the state: comparison of a batch with the last batch that a sink has committed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.errors import StateError
from penstock.core.location import Location
from penstock.sdk import BatchId, Sink

if TYPE_CHECKING:
    from penstock.plan.node import Node


def check_state_age(sink: Node, batch: BatchId, state: Path) -> None:
    """Raises StateError if the sink has committed a later batch, or this batch with other content.

    The sink would skip the batch as a repeated one. The content of a batch is unknown in targets
    that an earlier version has written.
    """
    check_batch(
        sink.sink,
        batch,
        f"{sink.label}: the state in {state}",
        "Restore the newer state. Without it, empty the output and run with --fresh. "
        "With --fresh alone, all rows are written again.",
        sink.where,
    )


def check_batch(
    sink: Sink[Any], batch: BatchId, state: str, hint: str, where: Location | None = None
) -> None:
    """Raises StateError as `check_state_age`. `state` names the sink and the state."""
    last = sink.last_batch(batch.query)
    if last is None or batch.number > last.number:
        return
    if batch.number == last.number and (not last.content or last.content == batch.content):
        return
    found = f"batch {batch.number}"
    if batch.number == last.number:
        found += " with other rows"
    raise StateError(
        f"{state} is older than the output: the sink has written up to batch {last.number}, and "
        f"the state continues with {found}",
        code="state-older-than-sink",
        where=where,
        hint=hint,
    )

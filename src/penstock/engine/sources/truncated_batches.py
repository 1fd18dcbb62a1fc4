"""Batches that begin with the removal of all rows of their source."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.sources.source_readers import source_offset
from penstock.plan.node import Node
from penstock.sdk import ReplayableSource


def begins_truncated(root: Node | None, checkpoint: Path, number: int) -> bool:
    """Returns whether a batch of a query begins so. `root` is the root of the query, if it is one.

    A repeated batch has the same offsets, and so the same result.
    """
    if root is None or root.kind != "source" or not root.source.truncates:
        return False
    assert isinstance(root.source, ReplayableSource)
    log = OffsetLog(checkpoint)
    starts = log.end_offsets(number - 1) if number else StartOffsets(checkpoint).read()
    start, end = starts[root.name], log.end_offsets(number)[root.name]
    return root.source.begins_truncated(source_offset(start), source_offset(end))

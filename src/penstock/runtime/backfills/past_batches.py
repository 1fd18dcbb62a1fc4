"""Past batches of a query whose rows depend on earlier rows, for a backfill that repeats them.

The rows of windows, joins and groups depend on the division of the input into batches: a row that
arrives in the batch after its window has closed is late. A backfill with the same batches computes
the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.sources.source_readers import CLOSED, source_offset
from penstock.plan.model import Query
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Offset

Batch = tuple[int, Mapping[str, Offset], int]
"""The number of a batch, the end offset of each source, and the watermark in milliseconds."""


@dataclass(frozen=True)
class PastBatches:
    """The committed batches of a query, as far as its offset log still has them.

    `closed` is set if the sentinel row has closed all windows with or after the last batch.
    """

    batches: tuple[Batch, ...]
    closed: bool = False

    @classmethod
    def parse(cls, batches: Sequence[Any], closed: bool = False) -> PastBatches:
        """Returns the batches of a JSON list."""
        return cls(tuple((number, ends, watermark) for number, ends, watermark in batches), closed)

    @property
    def watermarks(self) -> tuple[int, ...]:
        """The watermark of each batch, in milliseconds since 1970."""
        return tuple(watermark for _, _, watermark in self.batches)

    @property
    def sufficient(self) -> bool:
        """Whether the watermark of the last batch is known: that of the rows of the batch before.

        The first batch has no watermark.
        """
        first = self.batches[0][0] if self.batches else None
        return len(self.batches) > 1 or first == 0

    def after(self, earlier: PastBatches) -> PastBatches:
        """Returns the earlier batches and those of this object that follow them."""
        last = earlier.batches[-1][0] if earlier.batches else -1
        later = [batch for batch in self.batches if batch[0] > last]
        return PastBatches((*earlier.batches, *later), self.closed)

    def bounds(self, source: str, start: Offset) -> tuple[Offset, ...]:
        """Returns the offsets between the batches of a source, from `start` on."""
        bounds = [start]
        for _, offsets, _ in self.batches:
            bounds.append(offsets.get(source, bounds[-1]))
        return tuple(bounds)


def read_past_batches(state: StateDirectory, query: Query) -> PastBatches:
    """Returns the committed batches of a query. Of the whole input there is one batch."""
    committed = state.committed(query.name)
    log = OffsetLog(state.checkpoint(query.name))
    batches: list[Batch] = []
    closed = False
    for number in log.numbers():
        if committed is None or number > (0 if query.whole_input else committed):
            break
        offsets = log.end_offsets(number)
        ends = {name: source_offset(offset) for name, offset in offsets.items()}
        closed = any(offset.get(CLOSED) for offset in offsets.values())
        if not (closed and batches and batches[-1][1] == ends):
            batches.append((number, ends, log.watermark(number)))
    return PastBatches(tuple(batches), closed)

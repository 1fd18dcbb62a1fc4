"""The bounds of phases at the present time, and the start of the last phase by positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from penstock.connectors.hybrid.bounds import Bounds, check_columns, last_positions
from penstock.connectors.hybrid.config import Handover
from penstock.connectors.hybrid.phase import Phase
from penstock.sdk import Offset, Read, ReplayableSource
from penstock.sdk.phases import PhasedSource, PositionedSource


def find_bounds(node: PhasedSource[Any], handover: Handover | None) -> Bounds:
    """Returns the bounds of the phases of a source now.

    The last phase starts before the end of the others is known, so that no record between the two
    is missing.
    """
    numbered = {str(number): phase for number, phase in enumerate(node.phases, 1)}
    starts = {number: phase.initial_offset() for number, phase in numbered.items()}
    *bounded, last = numbered
    ends = {number: numbered[number].latest_offset(starts[number]) for number in bounded}
    positions: Mapping[int, int] | None = None
    if handover is not None:
        positions = last_positions(_bounded_rows(node, starts, ends, handover), handover)
    elif node.starts is not None:
        positions = _positions_before(node.starts) or None
    if positions is not None:
        positioned = numbered[last]
        assert isinstance(positioned, PositionedSource)
        starts[last] = positioned.offset_after(positions)
    return Bounds(starts, ends)


def _positions_before(source: ReplayableSource[Any]) -> dict[int, int]:
    """Returns the last record before the start of each partition, of a source of the starts."""
    source.columns = source.columns or source.infer_schema()
    assert source.columns is not None
    names = Handover(partition="partition", offset="offset")
    check_columns(names, source.columns)
    start = source.initial_offset()
    batches = (
        rows
        for partition in source.partitions(start, source.latest_offset(start))
        for rows in source.read(partition, Read(frozenset({"partition", "offset"})))
    )
    return {number: offset - 1 for number, offset in last_positions(batches, names).items()}


def _bounded_rows(
    node: PhasedSource[Any], starts: Mapping[str, Offset], ends: Mapping[str, Offset],
    handover: Handover,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """Yields the rows of the bounded phases, with the columns of `handover`."""
    assert node.columns is not None
    check_columns(handover, node.columns)
    columns = frozenset({handover.partition, handover.offset})
    for number, end in ends.items():
        if starts[number] == end:
            continue
        phase = Phase(node, int(number))
        for partition in phase.source.partitions(starts[number], end):
            read = Read(columns, isolated=True)
            yield from phase.rows(partition, read, pa.schema([]))

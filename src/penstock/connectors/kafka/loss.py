"""Records that are gone before they were read."""

from __future__ import annotations

from penstock.connectors.kafka.position import Partition, Position
from penstock.connectors.kafka.reading import Range
from penstock.core.errors import DecodeError, Permanent


def judge(start: Position, end: Position) -> None:
    """Raises Permanent if it is plain from the ends of the partitions that records are gone."""
    for topic in start.ids:
        if topic not in end.ids:
            raise lost(f'topic "{topic}" is gone: it was deleted')
    for topic in start.renewed(end):
        raise lost(f'topic "{topic}" is another than before: it was deleted and made again')
    for partition, at in start.offsets.items():
        if end.offsets.get(partition, -1) < at:
            raise lost(
                f"{partition} ends before offset {at:,}, where reading is to go on: "
                "its log was cut off"
            )


def gone(range_: Range) -> DecodeError:
    """The dead letter of a range that begins later than it should."""
    return DecodeError(told(range_.partition, range_.lost or 0, range_.start), code="data-gone")


def told(partition: Partition, first: int, next_: int) -> str:
    """Which offsets are gone, if the next one to read is `next_`."""
    if first >= next_:
        return (
            f"what came from offset {first:,} of {partition} on is gone: the topic was made again"
        )
    offsets = f"offset {first:,}" if next_ == first + 1 else f"offsets {first:,} to {next_ - 1:,}"
    verb = "is" if next_ == first + 1 else "are"
    return f"{offsets} of {partition} {verb} gone: deleted before being read"


def lost(what: str) -> Permanent:
    """The error that ends a source which must not miss anything."""
    return Permanent(
        what,
        code="data-gone",
        hint="on_data_loss: skip goes on with what is there; --fresh starts over",
    )

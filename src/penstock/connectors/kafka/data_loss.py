"""Data loss: records that were deleted before they were read."""

from __future__ import annotations

from penstock.connectors.kafka.offsets import Partition, TopicOffsets
from penstock.core.errors import Permanent


def check_data_loss(start: TopicOffsets, end: TopicOffsets) -> None:
    """Raises Permanent if the offsets show that records after `start` were deleted."""
    for topic in start.ids:
        if topic not in end.ids:
            raise data_loss_error(f'topic "{topic}" was deleted')
    for topic in start.recreated_topics(end):
        raise data_loss_error(f'topic "{topic}" was deleted and created again')
    for partition, offset in start.offsets.items():
        if end.offsets.get(partition, -1) < offset:
            raise data_loss_error(
                f"{partition} was truncated before offset {offset:,}, the next to read"
            )


def describe_gap(partition: Partition, first: int, next_offset: int) -> str:
    """Returns a description of deleted records from offset `first` to before `next_offset`."""
    if first >= next_offset:
        return f"records of {partition} from offset {first:,} were deleted with the topic"
    offsets = (
        f"offset {first:,}"
        if next_offset == first + 1
        else f"offsets {first:,} to {next_offset - 1:,}"
    )
    verb = "was" if next_offset == first + 1 else "were"
    return f"{offsets} of {partition} {verb} deleted before being read"


def data_loss_error(message: str) -> Permanent:
    """Returns the error of a source with `on_data_loss: fail`."""
    return Permanent(
        message,
        code="data-gone",
        hint="Set on_data_loss: continue to read the remaining records, or run with --fresh to "
        "reset the state.",
    )

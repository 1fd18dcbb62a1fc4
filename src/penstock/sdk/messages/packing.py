"""Messages in receipts, for sinks whose driver process sends all messages."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence

from penstock.sdk.sink import Receipt


def pack_messages(partition: int, messages: Iterable[Sequence[bytes]]) -> Receipt:
    """Returns a receipt with messages of one or several parts."""
    coded = [[base64.b64encode(part).decode() for part in parts] for parts in messages]
    return {"partition": partition, "messages": coded}


def unpack_messages(receipts: Sequence[Receipt]) -> Iterator[list[bytes]]:
    """Yields the messages of a batch in the order of partitions."""
    for receipt in sorted(receipts, key=lambda receipt: receipt["partition"]):
        for parts in receipt["messages"]:
            yield [base64.b64decode(part) for part in parts]

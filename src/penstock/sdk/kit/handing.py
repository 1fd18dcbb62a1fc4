"""Writers that hand their messages to the driver: where one process must send all of them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence

from penstock.sdk.sink import Receipt


def handed(partition: int, messages: Iterable[Sequence[bytes]]) -> Receipt:
    """A receipt that holds messages, each of several parts."""
    coded = [[base64.b64encode(part).decode() for part in parts] for parts in messages]
    return {"partition": partition, "messages": coded}


def taken(receipts: Sequence[Receipt]) -> Iterator[list[bytes]]:
    """The messages of a batch in order: those of the first partition come first."""
    for receipt in sorted(receipts, key=lambda receipt: receipt["partition"]):
        for parts in receipt["messages"]:
            yield [base64.b64decode(part) for part in parts]

"""Events of a change stream, and the positions of its resume tokens.

Source: https://www.mongodb.com/docs/manual/reference/change-events/
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from penstock.connectors.mongodb.client import codec_options
from penstock.connectors.mongodb.config import ID
from penstock.core.errors import Permanent
from penstock.sdk.database.changes import Transaction
from penstock.sdk.operations import Operation

_TIME = "82"
"""The type of a time in the keys of MongoDB, with which each token starts."""
_EPOCH_SECONDS = 1_577_836_800
"""2020, so that positions are 64-bit integers until 2088."""
_OPERATIONS = {
    "insert": Operation.INSERT, "update": Operation.UPDATE, "replace": Operation.UPDATE,
    "delete": Operation.DELETE,
}  # fmt: skip
_ENDS = {
    "drop": "dropped", "dropDatabase": "dropped with its database", "rename": "renamed",
    "invalidate": "dropped or renamed",
}  # fmt: skip


def position_of(time: Any) -> int:
    """Returns a time of the oplog as a number that grows."""
    return int(time.time - _EPOCH_SECONDS << 32 | time.inc)


def seconds_between(first: int, second: int) -> int:
    """Returns the seconds from a position to another one."""
    return (second >> 32) - (first >> 32)


def position_of_token(token: str) -> int:
    """Returns the time of a resume token. Raises Permanent for a token of another form."""
    from bson import Timestamp

    try:
        if not token.startswith(_TIME):
            raise ValueError
        return position_of(Timestamp(int(token[2:10], 16), int(token[10:18], 16)))
    except ValueError:
        raise Permanent(
            f"the server has resume tokens of an unknown form: {token[:40]}",
            code="change-streams", hint="Use MongoDB 4.4 or later.",
        ) from None  # fmt: skip


def key_of(value: Any) -> bytes:
    """Returns an `_id` as a document of BSON, which has its exact type."""
    import bson

    return bson.encode({ID: value}, codec_options=codec_options())


def value_of(key: bytes) -> Any:
    """Returns the `_id` of `key_of`."""
    import bson

    return bson.decode(key, codec_options())[ID]


@dataclass(frozen=True)
class Event:
    """A change of a document. `token` is the position after it.

    `document` is the document after the change, and `before` the one before a delete, if the server
    has them.
    """

    operation: Operation
    key: bytes
    document: bytes | None
    before: bytes | None
    transaction: Transaction
    token: str


def parse_event(event: Any, collection: str) -> Event:
    """Returns an event of the stream of a collection. Raises Permanent if the stream ends with it.

    Embedded documents are not decoded.
    """
    token, kind = event["_id"]["_data"], event["operationType"]
    operation = _OPERATIONS.get(kind)
    if operation is None:
        raise Permanent(
            f'the collection "{collection}" was {_ENDS.get(kind, f"changed by {kind}")} at {token}',
            code="not-found",
            hint="Remove the state of the pipeline to read the collection again; documents that "
            "were removed stay in the targets.",
        )
    return Event(
        operation, key_of(event["documentKey"][ID]), _content(event, "fullDocument"),
        _content(event, "fullDocumentBeforeChange"), _transaction(event, token), token,
    )  # fmt: skip


def _content(event: Any, name: str) -> bytes | None:
    document = event.get(name)
    return None if document is None else document.raw


def _transaction(event: Any, token: str) -> Transaction:
    """Returns the transaction of an event: its session and number, if it has several changes."""
    time = event["clusterTime"]
    id_ = None
    if event.get("txnNumber") is not None:
        id_ = f"{event['lsid']['id']}:{int(event['txnNumber'])}"
    at = event.get("wallTime")
    if not isinstance(at, dt.datetime):
        at = dt.datetime.fromtimestamp(time.time, dt.UTC)
    return Transaction(position_of(time), token, id_, at)

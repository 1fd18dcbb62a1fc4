"""Rows, keys and transactions of changes, and their form in the journal."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.core.errors import DecodeError
from penstock.sdk.operations import Operation


class Unsent(Enum):
    """The value of a column that the server has not sent with a change."""

    VALUE = "unsent"


Datum = str | bytes | None
"""A value as the text or the bytes that the database returns."""
Value = Datum | Unsent
Row = dict[str, Datum]
Key = tuple[Datum, ...]
"""The values of a primary key."""


@dataclass(frozen=True)
class Transaction:
    """A transaction in the log. `position` grows with each transaction.

    `lsn` is this position as the database writes it, and `id` the transaction for users.
    """

    position: int
    lsn: str
    id: int | str | None
    time: dt.datetime | None


def _bytes(value: bytes) -> dict[str, str]:
    return {"bytes": value.hex()}


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_bytes)


def key_text(key: Key) -> str:
    """Returns a key as JSON."""
    return _ENCODER.encode(key)


def key_of_text(text: str) -> Key:
    """Returns a key of `key_text`."""
    return tuple(map(_datum, json.loads(text)))


def change_payload(operation: Operation, row: Row) -> bytes:
    """Returns a change as a payload of the journal."""
    return _ENCODER.encode({"op": operation.value, "row": row}).encode()


def changes_of_payloads(payloads: Sequence[bytes]) -> tuple[list[str], list[Row]]:
    """Returns the operations and the rows of payloads. Raises DecodeError."""
    try:
        changes: list[dict[str, Any]] = [json.loads(payload) for payload in payloads]
    except ValueError as error:
        raise DecodeError(f"the record is not a change: {error}", code="not-json") from None
    rows = [{name: _datum(v) for name, v in change["row"].items()} for change in changes]
    return [change["op"] for change in changes], rows


def _datum(value: Any) -> Datum:
    return bytes.fromhex(value["bytes"]) if isinstance(value, Mapping) else value

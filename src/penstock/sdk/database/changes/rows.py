"""Rows, keys and transactions of changes, and their form in the journal."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

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


def has_unsent(row: Mapping[str, Value]) -> bool:
    """Returns whether the server has not sent a value of a row."""
    return Unsent.VALUE in row.values()


def with_values_of(before: Mapping[str, Value], row: Mapping[str, Value]) -> Mapping[str, Value]:
    """Returns a row with those values of the row before that the server has not sent again."""
    known = {name: value for name, value in before.items() if value is not None}
    return {
        name: known.get(name, value) if isinstance(value, Unsent) else value
        for name, value in row.items()
    }


def _bytes(value: bytes) -> dict[str, str]:
    return {"bytes": value.hex()}


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_bytes)
quoted: Callable[[str], str] = json.encoder.encode_basestring
MARK_OF_BYTES = b'{"bytes":'
_START = b'{"op": "'
_UNSENT = '{"unsent": true}'
_MARKS = (MARK_OF_BYTES, _UNSENT.encode())


def key_text(key: Key) -> str:
    """Returns a key as JSON."""
    return _ENCODER.encode(key)


def key_of_text(text: str) -> Key:
    """Returns a key of `key_text`."""
    return cast(Key, tuple(map(_value, json.loads(text))))


def change_payload(operation: Operation, row: Mapping[str, Value]) -> bytes:
    """Returns a change as a payload of the journal: JSON as that of `_ENCODER`.

    A value that is not known has a form of its own, which is no text: the row cannot be read.

    A call of an encoder for each row takes three times as long.
    """
    values = ", ".join(
        [
            f"{quoted(name)}: {quoted(value) if isinstance(value, str) else _json(value)}"
            for name, value in row.items()
        ]
    )
    return f'{{"op": "{operation.value}", "row": {{{values}}}}}'.encode()


def operation_of(payload: bytes) -> Operation | None:
    """Returns the operation of a payload; None for another one."""
    if not payload.startswith(_START):
        return None
    return Operation(payload[len(_START) :].partition(b'"')[0].decode())


def _json(value: bytes | Unsent | None) -> str:
    if isinstance(value, Unsent):
        return _UNSENT
    return "null" if value is None else f'{{"bytes": "{value.hex()}"}}'


def changes_of_payloads(
    payloads: Sequence[bytes],
) -> tuple[list[str], list[Mapping[str, Value]]]:
    """Returns the operations and the rows of payloads. Raises DecodeError."""
    try:
        changes = _parsed(payloads)
    except ValueError as error:
        raise DecodeError(f"the record is not a change: {error}", code="not-json") from None
    rows = [change["row"] for change in changes]
    if any(mark in payload for payload in payloads for mark in _MARKS):
        rows = [{name: _value(value) for name, value in row.items()} for row in rows]
    return [change["op"] for change in changes], rows


def _parsed(payloads: Sequence[bytes]) -> list[dict[str, Any]]:
    """Returns the changes of payloads. All of them are parsed at once, if they are valid."""
    with suppress(ValueError):
        changes: list[dict[str, Any]] = json.loads(b"[%b]" % b",".join(payloads))
        if len(changes) == len(payloads):
            return changes
    return [json.loads(payload) for payload in payloads]


def _value(value: Any) -> Value:
    if not isinstance(value, dict):
        return cast(Value, value)
    return bytes.fromhex(value["bytes"]) if "bytes" in value else Unsent.VALUE

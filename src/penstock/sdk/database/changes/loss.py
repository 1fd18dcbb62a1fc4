"""Changes that the server has removed before they were read."""

from __future__ import annotations

from penstock.core.errors import Permanent

_MARK = b"lost "
"""The start of a record of the journal for lost changes. No payload of a change starts with it."""


class LostChanges(Permanent):
    """The loss of changes of the table `table`; by default of all tables of a log.

    The changes after the `end` of the loss can be read, if it is known.
    """

    default_code = "data-gone"
    table: str | None = None
    end: tuple[int, str] | None = None


def loss_payload(message: str) -> bytes:
    """Returns the payload of the record of a loss in the journal."""
    return _MARK + message.encode()


def loss_message(payload: bytes) -> str | None:
    """Returns the message of the record of a loss; None for a change."""
    return payload.removeprefix(_MARK).decode() if payload.startswith(_MARK) else None

"""Changes that the server has removed before they were read, and rows that were removed at once."""

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


def truncated_table(name: str, at: str, *, is_part: bool = False) -> Permanent:
    """Returns the error of a table whose rows, or those of partitions, were removed at once.

    `at` is the position in the log or the journal.
    """
    subject = f'a partition of the table "{name}"' if is_part else f'the table "{name}"'
    removes = "" if is_part else "on_truncate: apply to remove the rows of the targets, or "
    return Permanent(
        f"{subject} was truncated at {at}; the rows that were removed are not known",
        code="truncated",
        hint=f"Set {removes}on_truncate: ignore to keep these rows in the targets, or remove the "
        "state and the targets to read the table again.",
    )


def loss_payload(message: str) -> bytes:
    """Returns the payload of the record of a loss in the journal."""
    return _MARK + message.encode()


def loss_message(payload: bytes) -> str | None:
    """Returns the message of the record of a loss; None for a change."""
    return payload.removeprefix(_MARK).decode() if payload.startswith(_MARK) else None


def missing_table(table: object) -> Permanent:
    """Returns the error of a table that was dropped or renamed."""
    return Permanent(
        f'there is no table "{table}"', code="not-found",
        hint="Check the option table. To read a table that was replaced or renamed, give its "
        "source another name.",
    )  # fmt: skip

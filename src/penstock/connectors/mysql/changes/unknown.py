"""Errors of changes whose rows are not in the binary log."""

from __future__ import annotations

from penstock.connectors.mysql.changes.statements import Effect
from penstock.core.errors import Permanent

_AGAIN = "Remove the state of the pipeline to read the table again from a snapshot."


def unknown_changes(table: str, effect: Effect, place: str) -> Permanent:
    """Returns the error of a statement or a transaction at a place of the log."""
    if effect is Effect.DROP:
        return Permanent(
            f'the table "{table}" was dropped, replaced or renamed at {place}',
            code="not-found", hint=_AGAIN,
        )  # fmt: skip
    if effect is Effect.REPLACE:
        return Permanent(
            f'rows of the table "{table}" were exchanged, imported or removed at {place} by ALTER '
            "TABLE, and are not known",
            code="binary-log", hint=_AGAIN,
        )  # fmt: skip
    if effect is Effect.CHANGE:
        return Permanent(
            f'rows of the table "{table}" were changed at {place} by a session with another '
            "binlog_format than ROW, and are not known",
            code="binary-log", hint=f"Remove binlog_format from the session. {_AGAIN}",
        )  # fmt: skip
    return Permanent(
        f'rows of the table "{table}" were changed at {place} by a transaction of XA, or by one '
        "that was rolled back; such transactions are not supported",
        code="binary-log", hint=f"Use transactions without XA. {_AGAIN}",
    )  # fmt: skip

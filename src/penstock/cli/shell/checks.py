"""Checks of statements that are valid SQL, and that a shell cannot execute."""

from __future__ import annotations

import re

from penstock.cli.shell.definitions import Definitions, Entry
from penstock.core.errors import UserError
from penstock.core.text import did_you_mean


def check_statement(entry: Entry, definitions: Definitions) -> None:
    """Raises UserError if a statement cannot be executed beside these definitions."""
    if entry.is_view or entry.written is not None:
        _check_reads_table(entry, definitions)
    if entry.is_view or entry.is_query:
        _check_relations(entry, definitions)
    if entry.written is not None and not entry.writes_own_query:
        _check_name(entry, definitions, entry.written)
    if entry.written in definitions.reads(entry):
        raise UserError(
            f'the query reads "{entry.written}", which it writes', code="reads-sink",
            where=entry.part.location, hint="create another table for writing",
        )  # fmt: skip


def _check_reads_table(entry: Entry, definitions: Definitions) -> None:
    if entry.reads(definitions.entries):
        return
    if entry.is_view:
        hint = f"write the query where its rows are read: FROM (...) AS {entry.key}"
    else:
        hint = "select the rows FROM a table; the connector generate makes rows"
    raise UserError(
        f"the query of {entry.summary} reads no table" if entry.is_view
        else f'the query that writes "{entry.written}" reads no table',
        code="missing-option", where=entry.part.location, hint=hint,
    )  # fmt: skip


def _check_relations(entry: Entry, definitions: Definitions) -> None:
    for name in sorted(entry.reads(definitions.entries)):
        _check_name(entry, definitions, name)


def _check_name(entry: Entry, definitions: Definitions, name: str) -> None:
    """Raises UserError if a table or view does not exist."""
    if name in definitions.entries:
        return
    part = entry.part
    found = re.search(rf"\b{re.escape(name)}\b", part.text, re.IGNORECASE)
    start = part.start + (found.start() if found else 0)
    names = [each.key for each in definitions.tables()]
    raise UserError(
        f'there is no table or view "{name}"', code="unknown-table",
        where=part.file.location(start, start + len(name)) if found else part.location,
        hint=did_you_mean(name, names) if names else "create it with CREATE TABLE ... WITH",
    )  # fmt: skip

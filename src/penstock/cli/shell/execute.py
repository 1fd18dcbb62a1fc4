"""Execution of an input: its commands and statements, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.cli.shell import commands
from penstock.cli.shell.definitions import Entry, read_entry
from penstock.cli.shell.input import Part, read_parts
from penstock.cli.shell.shell import Shell
from penstock.cli.shell.statements import execute_statement
from penstock.core.errors import OutputClosed, PenstockError, UserError


def execute(shell: Shell, text: str) -> Iterator[PenstockError]:
    """Executes the commands and statements of a text, and yields their errors.

    After an error the statements that do not use the wrong definition are executed. Raises
    EndOfShell, and OutputClosed.
    """
    wrong: set[str] = set()
    for part in read_parts(text):
        try:
            _execute(shell, part, wrong)
        except OutputClosed:
            raise
        except PenstockError as error:
            yield error


def _execute(shell: Shell, part: Part, wrong: set[str]) -> None:
    """Executes a part of the input. Adds the name of a definition with errors to `wrong`."""
    if part.is_command:
        commands.execute(shell, part.text)
        return
    if execute_statement(shell, part):
        return
    entry = read_entry(part)
    name = None if entry.is_query or entry.kind == "set" else entry.key
    try:
        _check_used(shell, entry, wrong)
        shell.execute(entry)
        wrong.discard(name or "")
    except PenstockError:
        wrong |= {name} if name else set()
        raise


def _check_used(shell: Shell, entry: Entry, wrong: set[str]) -> None:
    """Raises UserError if a statement uses a definition that has errors."""
    for name in sorted(shell.definitions.used(entry, wrong) & wrong - {_name_of(entry)}):
        raise UserError(
            f'the statement uses "{name}", whose definition has an error',
            code="unknown-table", where=entry.part.location,
            hint=f"correct the definition of {name}, and enter the statement again",
        )  # fmt: skip


def _name_of(entry: Entry) -> str:
    return "" if entry.is_query else entry.key

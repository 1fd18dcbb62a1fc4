"""Commands of the shell, which begin with a backslash."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from penstock.cli.printing import print_table
from penstock.cli.shell.definitions import join, read_entries
from penstock.cli.shell.shell import Shell
from penstock.core.errors import UserError
from penstock.core.text import did_you_mean


class Command(NamedTuple):
    """A command: its usage, its help, and the function that executes it."""

    usage: str
    help: str
    execute: Callable[[Shell, str], None]


class EndOfShell(Exception):
    """The end of the shell, requested by `\\q`."""


def execute(shell: Shell, line: str) -> None:
    """Executes a command line. Raises PenstockError, or EndOfShell."""
    word, _, argument = line.strip().removesuffix(";").partition(" ")
    command = COMMANDS.get(word)
    if command is None:
        hint = did_you_mean(word, COMMANDS) or "Enter \\? for the commands."
        raise UserError(f"unknown command {word}", code="usage", hint=hint)
    command.execute(shell, argument.strip())


def _describe(shell: Shell, name: str) -> None:
    if not name:
        rows = [tuple(entry.summary.split(" ", 1)) for entry in shell.definitions.tables()]
        print_table(("kind", "name"), rows)
        return
    entry = shell.definitions.entries.get(name.lower())
    if entry is None:
        raise _unknown(shell, name)
    if entry.sink_only:
        print(entry.text)
        return
    from penstock import app
    from penstock.engine.columns import to_arrow
    from penstock.sdk.columns.conform import sql_name

    [query] = read_entries(f"SELECT * FROM `{name}`")
    plan = shell.plan(query)
    types = app.types(plan, shell.spark.result().newSession())
    columns = next(columns for node, columns in types.items() if node.lower() == name.lower())
    print_table(
        ("column", "type"), [(field.name, sql_name(field.type)) for field in to_arrow(columns)]
    )


def _explain(shell: Shell, text: str) -> None:
    from penstock.cli.explain import print_explanation

    entries = [entry for entry in read_entries(text) if entry.is_query]
    if len(entries) != 1:
        raise UserError("expected one query", code="usage", hint="Enter \\explain SELECT ...")
    print_explanation(shell.plan(entries[0]), shell.spark.result().newSession())


def _save(shell: Shell, argument: str) -> None:
    names = shlex.split(argument)
    if len(names) != 1 or not names[0].endswith(".sql"):
        raise UserError("expected a file name with the suffix .sql", code="usage")
    path = Path(names[0])
    if path.exists():
        raise UserError(f"{path} exists", code="file-exists", hint="Choose another name.")
    queries = shell.inserts or ([shell.last_query] if shell.last_query else [])
    try:
        path.write_text(join([*shell.definitions.entries.values(), *queries]))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", code="cannot-write") from error
    print(f"saved {path}; run: penstock run {shlex.quote(str(path))}")


def _drop(shell: Shell, name: str) -> None:
    if not name:
        raise UserError(
            "expected the name of a table or view", code="usage", hint="Enter \\drop NAME."
        )
    if name.lower() not in shell.definitions.entries:
        raise _unknown(shell, name)
    shell.drop(name)


def _unknown(shell: Shell, name: str) -> UserError:
    hint = did_you_mean(name, shell.definitions.entries) or "Enter \\d for the tables and views."
    return UserError(f'there is no table or view "{name}"', code="unknown-table", hint=hint)


def _help(shell: Shell, _: str) -> None:
    print_table(("", ""), [(each.usage, each.help) for each in COMMANDS.values()])


def _quit(shell: Shell, _: str) -> None:
    raise EndOfShell


COMMANDS = {
    "\\?": Command("\\?", "show this help", _help),
    "\\d": Command("\\d [NAME]", "list tables and views, or the columns of one", _describe),
    "\\drop": Command("\\drop NAME", "remove a table or view", _drop),
    "\\explain": Command("\\explain QUERY", "show the plan of a query", _explain),
    "\\save": Command("\\save FILE.sql", "save the statements as a script", _save),
    "\\q": Command("\\q", "end the shell, as Ctrl-D does", _quit),
}

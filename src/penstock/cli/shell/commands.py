"""Commands of the shell, which begin with a backslash."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from penstock.cli.printing import print_table
from penstock.cli.shell import catalog
from penstock.cli.shell.input import read_parts
from penstock.cli.shell.script import Script
from penstock.cli.shell.shell import Shell
from penstock.core.errors import UserError
from penstock.core.text import did_you_mean


class Command(NamedTuple):
    """A command: its usage, its help, and the function that executes it."""

    usage: str
    help: str
    execute: Callable[[Shell, str], None]


class EndOfShell(Exception):
    """The end of the shell, requested by `\\q`. `code` is the exit code."""

    code: int = 0


def execute(shell: Shell, line: str) -> None:
    """Executes a command line. Raises PenstockError, or EndOfShell."""
    word, _, argument = line.strip().removesuffix(";").partition(" ")
    command = COMMANDS.get(ALIASES.get(word.lower(), word))
    if command is None:
        hint = did_you_mean(word, COMMANDS) or "Enter \\? for the commands."
        raise UserError(f"unknown command {word}", code="usage", hint=hint)
    command.execute(shell, argument.strip())


def _describe(shell: Shell, name: str) -> None:
    if name:
        catalog.describe(shell, name)
    else:
        catalog.list_entries(shell, ("table", "view", "function"))


def _explain(shell: Shell, text: str) -> None:
    [*parts] = read_parts(text)
    if len(parts) != 1:
        raise UserError("expected one query", code="usage", hint="Enter \\explain SELECT ...")
    catalog.explain(shell, parts[0])


def _save(shell: Shell, argument: str) -> None:
    path = Path(_without_quotes(argument))
    if path.suffix != ".sql":
        raise UserError("expected a file name with the suffix .sql", code="usage")
    if path.exists():
        raise UserError(f"{path} exists", code="file-exists", hint="Choose another name.")
    if not shell.definitions.entries:
        raise UserError("there are no definitions", code="usage", hint="Enter CREATE TABLE first.")
    inserts = list({insert.text: insert for insert in shell.inserts}.values())
    queries = inserts or ([shell.last_query] if shell.last_query else [])
    script = Script((*shell.definitions.entries.values(), *queries))
    try:
        path.write_text(script.text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}", code="unwritable-file") from error
    print(f"saved {path}; run: penstock run {shlex.quote(str(path))}")


def _without_quotes(name: str) -> str:
    """Returns a file name without the quotes around it."""
    quote = name[:1]
    return name[1:-1] if len(name) > 1 and quote in "'\"" and name.endswith(quote) else name


def _drop(shell: Shell, name: str) -> None:
    if not name:
        raise UserError(
            "expected the name of a table or view", code="usage", hint="Enter \\drop NAME."
        )
    catalog.drop(shell, name)


def _help(shell: Shell, _: str) -> None:
    print_table(("", ""), [(each.usage, each.help) for each in COMMANDS.values()])
    print()
    print_table(("", ""), _STATEMENTS)


def _quit(shell: Shell, _: str) -> None:
    raise EndOfShell


COMMANDS = {
    "\\?": Command("\\?, help", "show this help", _help),
    "\\d": Command("\\d [NAME]", "list tables and views, or the columns of one", _describe),
    "\\drop": Command("\\drop NAME", "remove a table or view", _drop),
    "\\explain": Command("\\explain QUERY", "show the plan of a query", _explain),
    "\\save": Command("\\save FILE.sql", "save the statements as a script", _save),
    "\\q": Command("\\q, exit, quit", "end the shell, as Ctrl-D does", _quit),
}
ALIASES = {
    "help": "\\?", "?": "\\?", "\\h": "\\?", "\\help": "\\?", ".help": "\\?",
    "exit": "\\q", "quit": "\\q", "\\quit": "\\q", "\\exit": "\\q", ".exit": "\\q", ".quit": "\\q",
    "\\dt": "\\d", "\\dv": "\\d", "\\df": "\\d", ".tables": "\\d", ".schema": "\\d",
}  # fmt: skip
"""Commands of other shells, and their counterparts."""
_STATEMENTS = (
    ("CREATE TABLE, VIEW, FUNCTION", "define a source, a sink, a query, a function"),
    ("SELECT ...;", "print rows"),
    ("INSERT INTO NAME SELECT ...;", "write rows"),
    ("SET NAME = VALUE;", "change a setting; SET lists the settings, RESET NAME removes one"),
    ("SHOW TABLES, VIEWS, FUNCTIONS;", "list definitions"),
    ("SHOW CREATE TABLE NAME;", "show the statement of a definition"),
    ("DESCRIBE NAME;", "show the columns of a table, a view or a query"),
    ("EXPLAIN SELECT ...;", "show the plan of a query"),
    ("DROP TABLE NAME;", "remove a table; DROP VIEW and DROP FUNCTION remove others"),
)

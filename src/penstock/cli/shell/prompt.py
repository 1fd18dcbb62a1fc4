"""Prompt on a terminal: several lines, history, completion of names, highlighting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from penstock.cli.shell.commands import COMMANDS
from penstock.cli.shell.input import is_complete
from penstock.cli.shell.shell import Shell
from penstock.core.files.private_files import open_private
from penstock.spec.script.statements import CreateTable

KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "JOIN", "LEFT JOIN", "ON", "AS", "AND", "OR",
    "CREATE TABLE", "CREATE VIEW", "INSERT INTO", "WITH", "SET", "CAST", "INTERVAL",
    "WATERMARK FOR", "PRIMARY KEY", "UNION ALL", "CASE", "WHEN", "THEN", "ELSE", "END",
    "CREATE FUNCTION", "SHOW TABLES", "SHOW VIEWS", "SHOW FUNCTIONS", "SHOW CREATE TABLE",
    "DESCRIBE", "EXPLAIN", "DROP TABLE", "DROP VIEW", "RESET", "LIMIT", "VALUES",
    "IF EXISTS", "IF NOT EXISTS", "connector", "format", "exit", "quit", "help",
)  # fmt: skip
PROMPT, CONTINUATION = "penstock> ", "       -> "


class NameCompleter(Completer):
    """A completer of commands, keywords, tables, views and declared columns."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if text.startswith("\\") and " " not in text:
            yield from _matches(text, COMMANDS)
            return
        word = document.get_word_before_cursor()
        if word:
            yield from _matches(word, [*self._names(), *KEYWORDS])

    def _names(self) -> Iterator[str]:
        for entry in self._shell.definitions.tables():
            statement = entry.statement
            yield from ([statement.name.value] if hasattr(statement, "name") else [])
            if isinstance(statement, CreateTable):
                yield from (column.name.value for column in statement.columns.columns)


def _matches(word: str, names: object) -> Iterator[Completion]:
    assert isinstance(names, dict | list)
    for name in dict.fromkeys(names):
        if name.lower().startswith(word.lower()):
            yield Completion(name, start_position=-len(word))


class Prompt:
    """The prompt of a shell. Enter accepts a statement that ends with a semicolon."""

    def __init__(self, shell: Shell) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=NameCompleter(shell),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=CONTINUATION,
        )

    def read(self) -> str:
        """Returns a statement or a command. Raises EOFError at Ctrl-D, KeyboardInterrupt."""
        return self._session.prompt(PROMPT)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=Condition(_accepts))
    @bindings.add("c-j", filter=Condition(_accepts))  # Enter, typed while a query was running
    def accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def _accepts() -> bool:
    from prompt_toolkit.application import get_app

    text = get_app().current_buffer.text.strip()
    return not text or is_complete(text)


def _history() -> History:
    """Returns the history of the user, readable by the owner only."""
    root = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = root / "penstock" / "sql_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_private(path, "a"):
            pass
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))

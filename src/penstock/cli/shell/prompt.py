"""Prompt on a terminal: several lines, history, completion of names, highlighting."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
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
from penstock.language.document import Document as Script
from penstock.language.relations import Relations
from penstock.language.script import read_statements, script_relations
from penstock.language.script_completion import ScriptCompleter

WORDS = (
    "SHOW TABLES", "SHOW VIEWS", "SHOW FUNCTIONS", "SHOW CREATE TABLE", "DESCRIBE", "EXPLAIN",
    "DROP TABLE", "DROP VIEW", "RESET", "exit", "quit", "help",
)  # fmt: skip
"""The statements of a shell that scripts do not have."""
PROMPT, CONTINUATION = "penstock> ", "       -> "
_FIELD = re.compile(r"\$\d|\$\{\d(?::[^}]*)?\}")


class ScriptInputCompleter(Completer):
    """A completer of commands, and of statements after the definitions of the shell."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if text.startswith("\\") and " " not in text:
            yield from _matches(text, COMMANDS)
            return
        yield from self._in_script(document)
        word = document.get_word_before_cursor(WORD=True)
        if word and text.strip() == word:
            yield from _matches(word, WORDS)

    def _in_script(self, document: Document) -> Iterator[Completion]:
        """Yields the proposals of the language service. Fields of snippets are left out."""
        before = "".join(f"{each.text};\n" for each in self._shell.definitions.tables())
        script = Script(Path("shell.sql"), before + document.text)
        statements = list(read_statements(script.text))
        relations = Relations(script_relations(script.text, statements))
        index = len(before) + document.cursor_position
        found = ScriptCompleter(script, statements, relations).complete(index)
        if found is None:
            return
        start = script.index(found.range.start) - index
        for item in found.items:
            text = _FIELD.sub("", item.label if item.kind == "snippet" else item.text)
            yield Completion(text, start, display=item.label, display_meta=item.detail)


def _matches(word: str, names: Iterable[str]) -> Iterator[Completion]:
    for name in names:
        if name.lower().startswith(word.lower()):
            yield Completion(name, start_position=-len(word))


class Prompt:
    """The prompt of a shell. Enter accepts a statement that ends with a semicolon."""

    def __init__(self, shell: Shell) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=ScriptInputCompleter(shell),
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

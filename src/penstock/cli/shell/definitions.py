"""Definitions of a shell: its tables, views and settings, as statements of a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.core.errors import SpecError
from penstock.core.text import plural
from penstock.spec.script.statements import CreateTable, Insert, Select, Set, Statement
from penstock.spec.script.statements import read_statement as parse_statement
from penstock.spec.script.tokens import TokenReader, split_statements, tokenize
from penstock.spec.yaml.nodes import File
from penstock.sql.facts import parse_facts

NAME = "<sql>"
"""The name of a statement in messages."""


@dataclass(frozen=True)
class Entry:
    """A statement with its text. `text` has no semicolon at its end."""

    text: str
    statement: Statement
    sink_only: bool = False
    """Whether the connector of a table cannot be read."""

    @property
    def key(self) -> str:
        """The name of a definition, or the path of a setting. A later one replaces it."""
        if isinstance(self.statement, Set):
            return "SET " + ".".join(part.value for part in self.statement.path).lower()
        assert not isinstance(self.statement, Insert | Select)
        return self.statement.name.value.lower()

    @property
    def is_query(self) -> bool:
        """Whether the statement runs. Other statements define something."""
        return isinstance(self.statement, Insert | Select)

    @property
    def relations(self) -> frozenset[str]:
        """The tables and views that the query of a statement reads, in lower case."""
        query = getattr(self.statement, "query", None)
        if query is None:
            return frozenset()
        return frozenset(map(str.lower, parse_facts(query.value).relations(frozenset())))

    @property
    def summary(self) -> str:
        """A line about a definition."""
        match self.statement:
            case CreateTable(name=name, columns=columns):
                count = len(columns.columns)
                return f"table {name.value}" + (f" ({plural(count, 'column')})" if count else "")
            case Set(path=path):
                return f"set {'.'.join(part.value for part in path)}"
            case Insert() | Select():
                return "query"
            case other:
                return f"{type(other).__name__.removeprefix('Create').lower()} {other.name.value}"


def read_entries(text: str, name: str = NAME) -> Iterator[Entry]:
    """Yields the statements of a text. Raises SpecError at the first that is wrong."""
    file = File(name, text, Path.cwd())
    for tokens in split_statements(tokenize(file)):
        statement = parse_statement(TokenReader(file, tokens))
        yield Entry(text[tokens[0].start : tokens[-1].end], statement)


def is_complete(text: str) -> bool:
    """Returns whether a text ends with a semicolon, outside of quotes and comments."""
    try:
        tokens = tokenize(File(NAME, text, Path.cwd()))
    except SpecError:
        return False
    return bool(tokens) and tokens[-1].text == ";"


@dataclass(frozen=True)
class Definitions:
    """The definitions of a shell, by key, in the order of the statements."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, entry: Entry) -> Definitions:
        """Returns the definitions with another one, which replaces one with the same key."""
        kept = {key: each for key, each in self.entries.items() if key != entry.key}
        return replace(self, entries={**kept, entry.key: entry})

    def remove(self, name: str) -> Definitions:
        """Returns the definitions without one. Raises KeyError."""
        kept = dict(self.entries)
        del kept[name.lower()]
        return replace(self, entries=kept)

    def script(self, query: Entry | None = None) -> str:
        """Returns a script: the query first, so that its lines are those of the user's text.

        Tables that cannot be read are left out, unless the query writes them.
        """
        written = ""
        if query is not None and isinstance(query.statement, Insert):
            written = query.statement.table.value.lower()
        used = (
            entry for key, entry in self.entries.items() if key == written or not entry.sink_only
        )
        return join(used if query is None else [query, *used])

    def tables(self) -> Sequence[Entry]:
        """Returns the definitions of tables, views and other named parts."""
        return [entry for entry in self.entries.values() if not isinstance(entry.statement, Set)]


def join(entries: Iterable[Entry]) -> str:
    """Returns a script of statements."""
    return "".join(f"{entry.text};\n" for entry in entries)

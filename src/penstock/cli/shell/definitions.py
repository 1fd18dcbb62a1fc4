"""Definitions of a shell: its tables, views and settings, as statements of a script."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from penstock.cli.shell.input import NAME, Part, read_parts
from penstock.core.errors import SpecError
from penstock.core.text import plural
from penstock.spec.script.function import CreateFunction
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.statements import CreateTable, Insert, Select, Set, Statement
from penstock.spec.script.statements import read_statement as parse_statement
from penstock.spec.script.tokens import tokenize
from penstock.sql.facts import parse_facts


@dataclass(frozen=True)
class Entry:
    """A statement of a script, and the part of the input with its text."""

    part: Part
    statement: Statement
    sink_only: bool = False
    """Whether the connector of a table cannot be read."""

    @property
    def text(self) -> str:
        """The text without a semicolon at its end."""
        return self.part.text

    @property
    def key(self) -> str:
        """The name of a definition, or the path of a setting. A later one replaces it."""
        if isinstance(self.statement, Set):
            return setting_key([part.value for part in self.statement.path])
        assert not isinstance(self.statement, Insert | Select)
        return self.statement.name.value.lower()

    @property
    def is_query(self) -> bool:
        """Whether the statement runs. Other statements define something."""
        return isinstance(self.statement, Insert | Select) or self.writes_own_query

    @property
    def is_view(self) -> bool:
        """Whether the statement names the rows of a query."""
        query = getattr(self.statement, "query", None)
        return query is not None and not self.is_query

    @property
    def writes_own_query(self) -> bool:
        """Whether the statement creates a sink and writes the rows of a query."""
        return self.has_connector and getattr(self.statement, "query", None) is not None

    @property
    def is_filled(self) -> bool:
        """Whether the statement creates a table that INSERT statements fill: without connector."""
        is_table = isinstance(self.statement, CreateTable)
        return is_table and not (self.has_connector or self.is_view)

    @property
    def has_connector(self) -> bool:
        """Whether the statement creates a table with a connector."""
        return isinstance(self.statement, CreateTable) and self.statement.options is not None

    @property
    def declares_sink(self) -> bool:
        """Whether the statement creates a table with `type = 'sink'`."""
        options = (isinstance(self.statement, CreateTable) and self.statement.options) or []
        return any(each.name == "type" and each.value.data() == "sink" for each in options)

    @property
    def keeps_existing(self) -> bool:
        """Whether the statement defines nothing if the name is taken: IF NOT EXISTS."""
        return getattr(self.statement, "keeps_existing", False)

    @property
    def kind(self) -> str:
        """The kind of a definition: table, view, function, or set."""
        if isinstance(self.statement, Set):
            return "set"
        return type(self.statement).__name__.removeprefix("Create").lower()

    def reads(self, known: Collection[str]) -> frozenset[str]:
        """Returns the tables and views that the query of a statement reads, in lower case.

        A query that cannot be parsed reads all `known` names in its text.
        """
        query = getattr(self.statement, "query", None)
        if query is None:
            return frozenset()
        return frozenset(map(str.lower, parse_facts(query.value).relations(frozenset(known))))

    @property
    def first_rows(self) -> int | None:
        """The number of rows after which a query is complete; None if only its end completes it."""
        return (
            parse_facts(self.statement.query.value).first_rows
            if isinstance(self.statement, Select)
            else None
        )

    @property
    def written(self) -> str | None:
        """The name of the table that a query writes, in lower case; None for rows to print."""
        if isinstance(self.statement, Insert):
            return self.statement.table.value.lower()
        return self.key if self.writes_own_query else None

    @property
    def summary(self) -> str:
        """A line about a definition."""
        match self.statement:
            case CreateTable(name=name, columns=columns):
                count = len(columns.columns)
                return f"table {name.value}" + (f" ({plural(count, 'column')})" if count else "")
            case Set(path=path):
                return f"set {'.'.join(part.value for part in path)}"
            case Insert(table=table):
                return f"insert into {table.value}"
            case Select():
                return "query"
            case other:
                return f"{self.kind} {other.name.value}"


def setting_key(path: Sequence[str]) -> str:
    """Returns the key of the definition of a setting."""
    return "SET " + ".".join(path).lower()


def read_entry(part: Part) -> Entry:
    """Returns the statement of a part of the input. Raises SpecError."""
    alone = part.alone
    try:
        tokens = tokenize(alone)
        reader = TokenReader(alone, tokens)
        statement = parse_statement(reader)
        if reader.errors:
            raise reader.errors[0]
    except SpecError as error:
        error.where = part.locate(error.where) if error.where else part.location
        raise
    return Entry(replace(part, end=part.start + tokens[-1].end), statement)


def read_entries(text: str, name: str = NAME) -> Iterator[Entry]:
    """Yields the statements of a text. Raises SpecError at the first that is wrong."""
    return map(read_entry, read_parts(text, name))


@dataclass(frozen=True)
class Definitions:
    """The definitions of a shell, by key, in the order of the statements."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, entry: Entry) -> Definitions:
        """Returns the definitions with another one, which replaces one with the same key."""
        kept = self.remove(entry.key) if entry.key in self.entries else self
        return Definitions({**kept.entries, entry.key: entry})

    def add_rows(self, insert: Entry) -> Definitions:
        """Returns the definitions with the rows that an INSERT adds to a table without connector.

        The rows of all INSERT statements are the rows of the table.
        """
        number = len(self._inserts(insert.written or "")) + 1
        return Definitions({**self.entries, f"INSERT {insert.written} {number}": insert})

    def remove(self, key: str) -> Definitions:
        """Returns the definitions without one, and without its rows. Raises KeyError."""
        kept = {name: each for name, each in self.entries.items() if each.written != key}
        del kept[key]
        return Definitions(kept)

    def has(self, entry: Entry) -> bool:
        """Returns whether the key of a definition is taken."""
        return not entry.is_query and entry.key in self.entries

    def is_filled(self, name: str | None) -> bool:
        """Returns whether a name is that of a table without connector, which INSERTs fill."""
        entry = self.entries.get(name or "")
        return entry is not None and entry.is_filled

    def _inserts(self, name: str) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.written == name]

    def used(self, entry: Entry, others: Collection[str] = ()) -> frozenset[str]:
        """Returns the tables and views that a statement reads or writes, through views too.

        `others` are names without a definition.
        """
        return self.reads(entry, others) | ({entry.written} if entry.written else frozenset())

    def reads(self, entry: Entry, others: Collection[str] = ()) -> frozenset[str]:
        """Returns the tables and views that a statement reads, through views too.

        `others` are names without a definition.
        """
        known = {*self.entries, *others}
        used: set[str] = set()
        found = set(entry.reads(known))
        while found:
            used |= found
            readers = [self.entries[name] for name in found if name in self.entries]
            readers += [insert for name in found for insert in self._inserts(name)]
            found = {name for reader in readers for name in reader.reads(known)} - used
        return frozenset(used)

    def readers(self, name: str) -> list[Entry]:
        """Returns the definitions that read a table or view."""
        return [
            self.entries[entry.written or ""] if entry.is_query else entry
            for entry in self.entries.values()
            if name in entry.reads(self.entries)
        ]

    def of_query(self, query: Entry) -> Definitions:
        """Returns the definitions that a query needs: settings, functions, and what it uses.

        Tables that cannot be read are left out, unless the query writes them.
        """
        used = self.used(query)
        return Definitions(
            {
                key: entry
                for key, entry in self.entries.items()
                if (
                    (entry.written or key) in used
                    or isinstance(entry.statement, Set | CreateFunction)
                )
                and (not entry.sink_only or key == query.written)
                and not (key == query.written and query.writes_own_query)
            }
        )

    def readable(self) -> Definitions:
        """Returns the definitions without tables that cannot be read, or have no rows yet."""
        return Definitions(
            {
                key: entry
                for key, entry in self.entries.items()
                if not entry.sink_only and (not entry.is_filled or self._inserts(key))
            }
        )

    def tables(self) -> Sequence[Entry]:
        """Returns the definitions of tables, views and other named parts."""
        entries = self.entries.values()
        return [e for e in entries if not (e.is_query or isinstance(e.statement, Set))]

    def settings(self) -> Sequence[Entry]:
        """Returns the settings."""
        return [entry for entry in self.entries.values() if isinstance(entry.statement, Set)]

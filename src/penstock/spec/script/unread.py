"""The statements of a script that have errors, by the names that other statements may use."""

from __future__ import annotations

from penstock.core.errors import SpecError
from penstock.spec.parsed import MissingParts
from penstock.spec.script.function import CreateFunction
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.statements import CreateTable, CreateView, Insert, Statement

_BEFORE_KIND = ("OR", "REPLACE", "TEMPORARY", "TEMP", "AGGREGATE")
_KINDS = ("TABLE", "VIEW", "FUNCTION", "MACRO")


class UnreadStatements:
    """The names that statements with errors define, and those of the tables that they write.

    `has_others` is whether there are further statements, of which no name is known.
    """

    def __init__(self) -> None:
        self.defined: set[str] = set()
        self.written: set[str] = set()
        self.has_others = False

    def add(self, reader: TokenReader) -> None:
        """Adds a statement, by its first words."""
        try:
            if reader.accept("CREATE"):
                self.defined.add(_created_name(reader))
            elif reader.accept("INSERT"):
                reader.accept("INTO")
                reader.accept("TABLE")
                self.written.add(reader.name("a name").value.lower())
            elif reader.ended or reader.first_word() not in ("SELECT", "WITH", "SET"):
                self.has_others = True
        except SpecError:
            self.has_others = True

    def skip(self, statement: Statement) -> None:
        """Adds a statement that was read and makes no node."""
        if isinstance(statement, CreateTable | CreateView | CreateFunction):
            self.defined.add(statement.name.value)
        elif isinstance(statement, Insert):
            self.written.add(statement.table.value.lower())

    def may_write(self, table: Statement) -> bool:
        """Returns whether one of the statements may write a table."""
        assert isinstance(table, CreateTable)
        return self.has_others or table.name.value.lower() in self.written

    @property
    def missing(self) -> MissingParts:
        """The names, as those of missing parts."""
        return MissingParts(frozenset(self.defined | self.written), self.has_others)


def _created_name(reader: TokenReader) -> str:
    """Reads the name that CREATE defines. Raises SpecError."""
    while reader.word() in _BEFORE_KIND:
        reader.any()
    if reader.word() not in _KINDS:
        raise reader.error("TABLE, VIEW, FUNCTION or MACRO")
    reader.any()
    reader.accept("IF", "NOT", "EXISTS")
    if reader.word() in ("AS", "WITH"):
        raise reader.error("a name")
    return reader.name("a name").value

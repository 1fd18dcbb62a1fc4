"""The statements of a SQL script."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean, nearest
from penstock.spec.script.function import CreateFunction, read_function
from penstock.spec.script.options import Option, read_options, read_value
from penstock.spec.script.other_statements import unsupported_statement
from penstock.spec.script.partitions import Partition, read_partitions
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.table import TableColumns, read_columns
from penstock.spec.script.tokens import Text
from penstock.spec.tree.nodes import Node

STATEMENTS = [
    "CREATE TABLE", "CREATE VIEW", "CREATE FUNCTION", "CREATE MACRO", "INSERT INTO", "SELECT",
    "SET",
]  # fmt: skip
_DEFINITIONS = ["TABLE", "VIEW", "FUNCTION", "MACRO"]
_SOURCE = "CREATE TABLE name (columns) WITH (connector = ...)"
_VIEW = "CREATE VIEW name AS SELECT ..."
_COUNTERPARTS = {
    **dict.fromkeys(("SOURCE", "STREAM", "EXTERNAL", "FOREIGN"), f"write {_SOURCE}"),
    "SINK": f"write {_SOURCE}, and INSERT INTO name SELECT ...",
    **dict.fromkeys(("MATERIALIZED", "LIVE", "RECURSIVE"), f"write {_VIEW}"),
    "CONNECTION": "write the options of the connection in WITH of each table",
}
"""Definitions of other systems, and the statements in place of them."""
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")


@dataclass(frozen=True)
class CreateTable:
    """`CREATE TABLE name (columns) PARTITIONED BY (columns) WITH (options) AS query`."""

    name: Text
    columns: TableColumns
    partitioned_by: list[Partition]
    options: list[Option] | None
    """None without WITH: the table is the result of a query."""
    query: Text | None
    lookup: bool = False
    """Whether the table is TEMPORARY: a lookup table."""
    keeps_existing: bool = False
    """Whether the statement has IF NOT EXISTS."""


@dataclass(frozen=True)
class CreateView:
    """`CREATE VIEW name (columns) AS query`."""

    name: Text
    columns: list[Text]
    query: Text
    keeps_existing: bool = False
    """Whether the statement has IF NOT EXISTS."""


@dataclass(frozen=True)
class Insert:
    """`INSERT INTO table (columns) query`."""

    table: Text
    columns: list[Text]
    query: Text


@dataclass(frozen=True)
class Select:
    """A query whose rows are printed."""

    query: Text


@dataclass(frozen=True)
class Set:
    """`SET path = value`."""

    path: list[Text]
    value: Node


Statement = CreateTable | CreateView | CreateFunction | Insert | Select | Set


def read_statement(reader: TokenReader) -> Statement:
    """Reads one statement. Raises SpecError."""
    if reader.accept("CREATE"):
        return _read_create(reader)
    if reader.accept("INSERT"):
        reader.expect("INTO")
        reader.accept("TABLE")
        table = reader.name("the name of a table")
        columns = [] if _is_query(reader) else reader.names("the name of a column")
        return Insert(table, columns, reader.rest("a query"))
    if reader.accept("SET") and not reader.ended:
        path = [reader.string("a name")] if reader.is_string() else _read_path(reader)
        reader.expect("=")
        statement = Set(path, read_value(reader))
        reader.end()
        return statement
    if _is_query(reader):
        return Select(reader.rest("a query"))
    raise unsupported_statement(reader) or _unknown_statement(reader)


def _is_query(reader: TokenReader) -> bool:
    if reader.at("("):
        return any(reader.at("(", word) for word in _QUERIES)
    return reader.word() in _QUERIES


def _read_path(reader: TokenReader) -> list[Text]:
    path = [reader.name("a name")]
    while reader.accept("."):
        path.append(reader.name("a name"))
    return path


def _read_create(reader: TokenReader) -> Statement:
    reader.accept("OR", "REPLACE")
    temporary = reader.accept("TEMPORARY") or reader.accept("TEMP")
    if reader.at("FUNCTION") or reader.at("AGGREGATE", "FUNCTION") or reader.at("MACRO"):
        return read_function(reader)
    if reader.accept("VIEW"):
        keeps_existing = reader.accept("IF", "NOT", "EXISTS")
        name = reader.name("the name of the view")
        names = reader.names("the name of a column") if reader.at("(") else []
        reader.expect("AS")
        return CreateView(name, names, reader.rest("a query"), keeps_existing)
    if not reader.accept("TABLE"):
        raise _unknown_definition(reader)
    keeps_existing = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name("the name of the table")
    columns = read_columns(reader) if reader.at("(") else TableColumns()
    partitioned_by: list[Partition] = []
    options = query = None
    while not reader.ended:
        if reader.accept("PARTITIONED", "BY"):
            partitioned_by = read_partitions(reader)
        elif reader.accept("WITH"):
            options = read_options(reader)
        elif reader.accept("AS"):
            query = reader.rest("a query")
        else:
            raise reader.error("WITH, PARTITIONED BY, AS or the end of the statement")
    return CreateTable(name, columns, partitioned_by, options, query, temporary, keeps_existing)


def _unknown_definition(reader: TokenReader) -> SpecError:
    *others, last = _DEFINITIONS
    error = reader.error(f"{', '.join(others)} or {last}")
    word = reader.word()
    if word in _COUNTERPARTS:
        error.hint = _COUNTERPARTS[word]
    elif (similar := nearest(word, _DEFINITIONS)) is not None:
        error.hint = f'did you mean "CREATE {similar}"?'
    else:
        error.hint = f"write one of {', '.join(f'CREATE {each}' for each in _DEFINITIONS)}"
    return error


def _unknown_statement(reader: TokenReader) -> SpecError:
    word = reader.word()
    return SpecError(
        f"unknown statement {word}" if word else "expected a statement",
        code="unknown-statement",
        where=reader.start,
        hint=did_you_mean(word, STATEMENTS) or f"write one of {', '.join(STATEMENTS)}",
    )

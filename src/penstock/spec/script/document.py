"""From the statements of a SQL script to a document: sources, transforms and sinks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.core.errors import SpecError, raise_all
from penstock.core.location import Location
from penstock.spec.script.nodes import ScriptNodes
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.statements import Statement, read_statement
from penstock.spec.script.tables import resolve_tables
from penstock.spec.script.tokens import Text, split_statements
from penstock.spec.script.tree_nodes import map_node
from penstock.spec.script.unclosed import find_open, tokenize_closed
from penstock.spec.script.unread import UnreadStatements
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import File, MappingNode
from penstock.sql.text.edits import DialectError
from penstock.sql.text.nesting import check_nesting
from penstock.sql.text.tokens import Token


def parse_script(text: str, name: str, base: Path) -> Document:
    """Returns the document of a SQL script. Raises SpecError or ValidationErrors.

    * `CREATE TABLE ... WITH` is a source, or a sink if an INSERT or its own query writes it.
    * `CREATE VIEW`, and `CREATE TABLE` without WITH, are transforms.
    * `INSERT INTO` connects a query with a sink; columns are assigned by position.
    * A query alone is printed.
    * `SET` sets the name, the description, or a setting of the runtime.
    """
    document = parse_valid_part(text, name, base)
    raise_all(document.errors)
    return document


def parse_valid_part(text: str, name: str, base: Path) -> Document:
    """Returns the document as `parse_script` does, without the statements that have errors.

    Their errors are `errors` of the document. Raises SpecError or ValidationErrors if no statement
    can be read.
    """
    file = File(name, text.removeprefix("\ufeff"), base)
    errors: list[SpecError] = []
    unread = UnreadStatements()
    tokens = tokenize_closed(file, errors, unread)
    if not tokens:
        raise_all(errors)
        raise SpecError(
            "the file is empty",
            code="empty-file",
            where=Location(name, 1, 1),
            hint="add CREATE TABLE statements and a query",
        )
    statements = list(_read_all(file, [*split_statements(tokens)], errors, unread))
    tables = resolve_tables(file, statements)
    nodes = ScriptNodes(file, tables, unread)
    nodes.add_all()
    errors += [*tables.errors, *nodes.errors]
    return Document(
        _root(file, nodes), (name,), (*tables.warnings, *nodes.warnings),
        errors=tuple(errors), missing=unread.missing if errors else None,
    )  # fmt: skip


def _read_all(
    file: File, parts: list[list[Token]], errors: list[SpecError], unread: UnreadStatements
) -> Iterator[Statement]:
    for tokens in parts:
        reader = TokenReader(file, tokens)
        try:
            statement = read_statement(reader)
            _check_nesting(file, statement)
        except SpecError as error:
            reader.errors.append(error)
        if not reader.errors:
            yield statement
            continue
        opened = find_open(file, tokens)
        errors += [opened] if opened else reader.errors
        unread.add(TokenReader(file, tokens))


def _check_nesting(file: File, statement: Statement) -> None:
    """Raises SpecError for a query that is nested too deeply."""
    query = getattr(statement, "query", None)
    if not isinstance(query, Text):
        return
    try:
        check_nesting(query.value)
    except DialectError as error:
        start = query.start + error.start
        where = file.location(start, start + 1)
        raise SpecError(error.message, code=error.code, where=where, hint=error.hint) from None


def _root(file: File, nodes: ScriptNodes) -> MappingNode:
    start = Text("", 0, 0)
    sections = {
        start._replace(value=section): map_node(file, entries)
        for section, entries in nodes.sections.items()
        if entries
    }
    return map_node(file, {**sections, **nodes.settings.entries()})

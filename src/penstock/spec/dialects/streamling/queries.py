"""Queries of Streamling in the SQL of pipelines.

Queries are those of DataFusion. A query whose input has the column `_gs_op` has it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.location import Location
from penstock.core.names import quote_name
from penstock.spec.dialects.streamling.calls import translate_calls
from penstock.spec.dialects.streamling.wide_operators import Kinds, translate_operators
from penstock.spec.tree.nodes import ScalarNode
from penstock.sql.datafusion.meaning.output_names import names_of_columns
from penstock.sql.datafusion.meaning.queries import translate_query
from penstock.sql.datafusion.meaning.settings import Settings
from penstock.sql.text.clauses import Item, Query, Select
from penstock.sql.text.edits import Edit, Translation
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import Sql, read_sql

OPERATION = "_gs_op"
"""The column with the kind of change of a row: `i`, `u` or `d`."""
_SETTINGS = Settings(replaces_all=True)
_AGGREGATES = ("ARRAY_AGG", "AVG", "COUNT", "MAX", "MEDIAN", "MIN", "STDDEV", "STRING_AGG", "SUM")
_FROM = ("FROM", "JOIN", ",")


def translate(
    text: ScalarNode, names: Mapping[str, str], wide: Kinds, *, operations: bool
) -> ScalarNode:
    """Returns a query in the SQL of pipelines, with the place of each part in the file.

    `names` are the nodes of the pipeline by their names in the file, in lower case, and `wide` the
    columns with integers of 256 bits. With `operations` the rows have the kind of change.
    """
    translation = _edit(Translation.of(text.written), _quoted_names)
    translation = _edit(translation, _without_end)
    translation = _edit(translation, lambda sql: _relations(sql, names))
    if operations:
        translation = _edit(translation, _with_operations)
    return _placed(text, _meaning(translation, wide))


def translate_condition(text: ScalarNode) -> str:
    """Returns a condition in the SQL of pipelines."""
    translation = _edit(Translation.of(text.written), _quoted_names)
    return _meaning(translation, {}).text


def _meaning(translation: Translation, wide: Kinds) -> Translation:
    translation = _edit(translation, names_of_columns)
    translation = translate_calls(translate_operators(translation, wide))
    return translate_query(translation, settings=_SETTINGS)


@dataclass(frozen=True)
class Reference:
    """A node that a node reads, by its name in lower case, and the place of the name."""

    name: str
    where: Location


def references(text: ScalarNode) -> list[Reference] | None:
    """Returns the relations that a query reads; None if they are not known."""
    translation = _edit(Translation.of(text.written.rstrip().removesuffix(";")), _quoted_names)
    sql = read_sql(translation.text)
    query = read_query(sql) if sql is not None else None
    if sql is None or query is None:
        return None
    found = [
        Reference(name, text.locate_span(*map(translation.origin, _place(sql, *source.part))))
        for select in query.walk()
        for source in select.sources
        if (name := _relation(sql, *source.part)) is not None and name not in query.ctes
    ]
    return found if found and all(len(select.sources) == 1 for select in query.walk()) else None


def _place(sql: Sql, first: int, last: int) -> tuple[int, int]:
    return sql[first].start, sql[last - 1].end


def _edit(translation: Translation, rule: Callable[[Sql], Iterable[Edit]]) -> Translation:
    sql = read_sql(translation.text)
    edits = list(rule(sql)) if sql is not None else []
    return translation.edit(edits) if edits else translation


def _placed(node: ScalarNode, translation: Translation) -> ScalarNode:
    text = translation.text
    origins = [min(translation.origin(index), len(node.written)) for index in range(len(text))]
    return node.derived(text, [*origins, len(node.written)])


def _quoted_names(sql: Sql) -> Iterator[Edit]:
    """Yields backticks in place of double quotes, which enclose names in DataFusion."""
    for token in sql.tokens:
        if token.kind == "string" and sql.text[token.start] == '"':
            name = sql.text[token.start + 1 : token.end - 1].replace('""', '"')
            yield Edit(token.start, token.end, quote_name(name))


def _without_end(sql: Sql) -> Iterator[Edit]:
    if len(sql) and sql.is_sign(len(sql) - 1, ";"):
        yield Edit(sql[len(sql) - 1].start, sql[len(sql) - 1].end, "")


def _relations(sql: Sql, names: Mapping[str, str]) -> Iterator[Edit]:
    """Yields the names of nodes whose names in the file have other characters, such as dots.

    A relation without an alias keeps its last name as its alias.
    """
    query = read_query(sql)
    for select in query.walk() if query is not None else ():
        for source in select.sources:
            first, last = source.part
            name = _relation(sql, first, last)
            target = names.get(name) if name is not None else None
            if target is None or name is None or target.lower() == name:
                continue
            alias = "" if source.alias else f" AS {quote_name(name.rpartition('.')[2])}"
            yield Edit(*_place(sql, first, last), f"{target}{alias}")
            yield from _qualifiers(sql, name, select)


def _qualifiers(sql: Sql, name: str, select: Select) -> Iterator[Edit]:
    """Yields the last name in place of a dotted name in front of a column."""
    parts = name.split(".")
    if len(parts) == 1:
        return
    first, last = select.part
    for index in range(first, last - 3):
        if sql.word(index - 1) in _FROM or sql.is_sign(index - 1, "."):
            continue
        found = [sql[index].value.lower(), sql[index + 2].value.lower()]
        if found == parts and sql.is_sign(index + 1, ".") and sql.is_sign(index + 3, "."):
            yield Edit(sql[index].start, sql[index + 2].start, "")


def _relation(sql: Sql, first: int, last: int) -> str | None:
    """Returns the name of a relation in lower case; None for a subquery or a function."""
    tokens = [sql[index] for index in range(first, last)]
    dots, names = tokens[1::2], tokens[::2]
    if not all(token.is_sign(".") for token in dots) or not all(token.is_name for token in names):
        return None
    return ".".join(token.value.lower() for token in names)


def _with_operations(sql: Sql) -> Iterator[Edit]:
    query = read_query(sql)
    if query is not None:
        yield from _operations_of(sql, query)


def _operations_of(sql: Sql, query: Query) -> Iterator[Edit]:
    for inner in query.ctes.values():
        yield from _operations_of(sql, inner)
    for select in query.selects:
        yield from _operation_of(sql, select)
        for source in select.sources:
            if source.query is not None:
                yield from _operations_of(sql, source.query)


def _operation_of(sql: Sql, select: Select) -> Iterator[Edit]:
    """Yields the column of operations for a select that lacks it.

    Rows of aggregates, of DISTINCT and of several relations have no operation of one row.
    """
    items = select.items
    if not items or select.groups or select.distinct or len(select.sources) != 1:
        return
    if any(_has_operation(item.name, item.is_star, item.excluded) for item in items):
        return
    if any(sql.word(index) in _AGGREGATES for index in range(*_items(items))):
        return
    end = sql[items[-1].part[1] - 1].end
    yield Edit(end, end, f", {OPERATION}")


def _items(items: Sequence[Item]) -> tuple[int, int]:
    return items[0].part[0], items[-1].part[1]


def _has_operation(name: str | None, is_star: bool, excluded: frozenset[str]) -> bool:
    return (name or "").lower() == OPERATION or (is_star and OPERATION not in excluded)

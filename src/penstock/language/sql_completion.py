"""Proposals in SQL: relations, columns, functions, keywords."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from penstock.language.functions import FunctionHelp, function_help
from penstock.language.model import Completion
from penstock.language.relations import Relation, Relations
from penstock.language.sql_scope import Named, Scope, scope_at
from penstock.plan.explain import Column
from penstock.sql.text.quoting import quoted

MAX_ITEMS = 200
KEYWORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "JOIN", "LEFT JOIN", "ON", "USING",
    "AS", "AND", "OR", "NOT", "IN", "IS NULL", "IS NOT NULL", "LIKE", "BETWEEN", "CASE", "WHEN",
    "THEN", "ELSE", "END", "CAST", "INTERVAL", "DISTINCT", "UNION ALL", "WITH", "OVER",
    "PARTITION BY", "LIMIT", "VALUES", "TRUE", "FALSE", "NULL",
)  # fmt: skip
_QUERY = Completion(
    "SELECT ... FROM ...", "snippet", "SELECT ${1:*}\nFROM ${2:source}\nWHERE ${3:condition}",
    "a query", snippet=True,
)  # fmt: skip
Found = tuple[int, int, list[Completion]]
"""The start and end of the text that proposals replace, and the proposals."""


def complete_sql(
    text: str, index: int, relations: Relations, *, inputs: Sequence[str] = (),
    functions: Sequence[FunctionHelp] = (), keywords: Sequence[str] = KEYWORDS,
) -> Found | None:  # fmt: skip
    """Returns the proposals at an index of a query, or of an expression over `inputs`.

    `functions` are those of the pipeline. None within a string or a comment.
    """
    scope = scope_at(text, index, relations.columns)
    if scope is None:
        return None
    own = [Named(name, relations.columns(name)) for name in inputs]
    items = _items(scope, [*scope.relations, *own], relations, functions, keywords)
    return scope.start, scope.end, matching(items, scope.word)


def matching(items: Iterable[Completion], word: str) -> list[Completion]:
    """Returns the proposals whose labels, or parts of labels, begin with a word.

    Labels that begin with the word are first. Of several with the same label the first is kept.
    """
    typed = word.lower()
    found: dict[str, Completion] = {}
    for each in items:
        label = each.label.lower()
        if label.startswith(typed) or f"_{typed}" in label or f".{typed}" in label:
            found.setdefault(each.label, each)
    best = sorted(found.values(), key=lambda each: not each.label.lower().startswith(typed))
    return best[:MAX_ITEMS]


def _items(
    scope: Scope, known: Sequence[Named], relations: Relations,
    functions: Sequence[FunctionHelp], keywords: Sequence[str],
) -> Iterator[Completion]:  # fmt: skip
    if scope.clause == "relation":
        yield from _relations(scope, relations)
        return
    if scope.qualifier is not None:
        yield from _qualified(scope.qualifier, known, relations)
        return
    if scope.clause == "expression" or (scope.clause == "keyword" and known and scope.word):
        yield from _columns(scope, known)
    if scope.clause != "expression" and not known:
        yield _QUERY
    yield from (Completion(word, "keyword", word) for word in keywords if scope.word)
    if scope.word:
        yield from map(function_completion, functions)
        yield from map(function_completion, function_help().values())


def _relations(scope: Scope, relations: Relations) -> Iterator[Completion]:
    if scope.qualifier is not None:
        prefix = f"{scope.qualifier.lower()}."
        for node in relations.readable():
            if node.name.lower().startswith(prefix):
                name = node.name[len(prefix) :]
                yield node_completion(node, relations, name)
        return
    yield from (Completion(name, "node", quoted(name), "table expression") for name in scope.tables)
    yield from (node_completion(node, relations) for node in relations.readable())


def node_completion(node: Relation, relations: Relations, name: str = "") -> Completion:
    """Returns the proposal of a node, with its columns."""
    columns = relations.columns(node.name)
    text = "\n".join(f"* `{column}`" for column in columns) if columns else ""
    detail = f"{node.kind} {node.type}".strip()
    return Completion(name or node.name, "node", name or node.name, detail, text)


def _qualified(name: str, known: Sequence[Named], relations: Relations) -> Iterator[Completion]:
    named = [each for each in known if each.name.lower() == name.lower()]
    columns = named[0].columns if named else relations.columns(name)
    yield from (column_completion(column) for column in columns or ())


def _columns(scope: Scope, known: Sequence[Named]) -> Iterator[Completion]:
    count: dict[str, int] = {}
    for relation in known:
        for column in relation.columns or ():
            count[column.name.lower()] = count.get(column.name.lower(), 0) + 1
    yield from (column_completion(column, "alias") for column in scope.aliases)
    for relation in known:
        for column in relation.columns or ():
            if count[column.name.lower()] > 1:
                qualified = Column(f"{relation.name}.{column.name}", column.type)
                text = f"{quoted(relation.name)}.{quoted(column.name)}"
                yield Completion(qualified.name, "column", text, column.type)
            else:
                yield column_completion(column)
    yield from (
        Completion(each.name, "node", quoted(each.name), "relation")
        for each in known
        if each.name and len(known) > 1
    )


def column_completion(column: Column, detail: str = "") -> Completion:
    """Returns the proposal of a column."""
    return Completion(column.name, "column", quoted(column.name), column.type or detail)


def function_completion(function: FunctionHelp) -> Completion:
    """Returns the proposal of a call, with the cursor between its brackets."""
    form = function.forms[0] if function.forms else function.name
    if "(" not in form:
        return Completion(function.name, "function", function.name, form, function.text)
    call = f"{function.name}()" if form.endswith("()") else f"{function.name}($0)"
    return Completion(function.name, "function", call, form, function.text, "$0" in call)

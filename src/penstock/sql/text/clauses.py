"""The clauses of queries: selected items, relations and groups, as ranges of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Part = tuple[int, int]
"""The first token of a part, and the token after it."""


@dataclass(eq=False)
class Item:
    """A selected expression. `name` is its alias, or the name of its column; None if unknown.

    `*` and `a.*` select the columns of relations, without those after EXCEPT or EXCLUDE.
    """

    part: Part
    expression: Part
    name: str | None
    has_alias: bool
    is_star: bool = False
    excluded: frozenset[str] = frozenset()


@dataclass(eq=False)
class Source:
    """A relation of FROM: a name, or a query in parentheses."""

    part: Part
    name: str | None
    query: Query | None
    alias: str | None
    join: str | None = None
    """The words of the join, as `LEFT JOIN`; None for the first relation."""
    condition: Part | None = None
    """The condition after ON."""
    using: Part | None = None
    """The columns after USING, without parentheses."""
    columns: Part | None = None
    """The columns after the alias, without parentheses."""


@dataclass(eq=False)
class Select:
    """`SELECT items FROM sources WHERE ... GROUP BY groups ...`."""

    part: Part
    items: list[Item]
    sources: list[Source]
    groups: list[Part]
    clauses: dict[str, Part]
    """The clauses without their keywords."""
    first_item: int
    distinct: bool = False
    distinct_on: Part | None = None
    """The expressions of `DISTINCT ON (...)`."""


@dataclass(eq=False)
class Query:
    """A query: common table expressions, and the operands of UNION and the like."""

    part: Part
    selects: list[Select]
    ctes: dict[str, Query] = field(default_factory=dict)
    operators: list[str] = field(default_factory=list)
    columns: Part | None = None
    """The columns after the name of a table expression, without parentheses."""

    def queries(self) -> Iterator[Query]:
        """Yields the query, and those of its table expressions and relations."""
        yield self
        for query in self.ctes.values():
            yield from query.queries()
        for select in self.selects:
            for source in select.sources:
                if source.query is not None:
                    yield from source.query.queries()

    def walk(self) -> Iterator[Select]:
        """Yields all selects: of the query, of its relations and of its table expressions."""
        for query in self.ctes.values():
            yield from query.walk()
        for select in self.selects:
            yield select
            for source in select.sources:
                if source.query is not None:
                    yield from source.query.walk()

"""Syntax trees of SQL texts, by sqlglot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import exp

DIALECT = "spark"
"""The dialect of SQL in a pipeline, as sqlglot names it."""


def parse_sql(text: str, dialect: str = DIALECT) -> exp.Expr | None:
    """Returns the tree of a query or expression; None if sqlglot cannot parse the text.

    sqlglot raises errors of any class, such as IndexError for `map('a')`.
    """
    try:
        with _without_warnings():
            return sqlglot.parse_one(text, dialect=dialect)
    except Exception:
        return None


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yields the parts of a condition that AND combines, without parentheses."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        for part in (condition.left, condition.right):
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


@contextmanager
def _without_warnings() -> Iterator[None]:
    logger = sqlglot.parser.logger
    level = logger.level
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        logger.setLevel(level)

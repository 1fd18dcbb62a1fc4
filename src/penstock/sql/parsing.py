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


@contextmanager
def _without_warnings() -> Iterator[None]:
    logger = sqlglot.parser.logger
    level = logger.level
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        logger.setLevel(level)

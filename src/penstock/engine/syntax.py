"""Syntax of SQL texts whose columns are unknown, by Spark's parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from penstock.core.errors import PenstockError
from penstock.engine.analysis import translate
from penstock.plan.model import Node, Plan
from penstock.sdk.sql_text import SqlText

QUERY = ("sql",)
"""The route of a text that is a query. Others are expressions or queries."""


def syntax_errors(
    plan: Plan, nodes: Iterable[Node], session: SparkSession
) -> Iterator[PenstockError]:
    """Yields the syntax errors in the SQL texts of nodes outside of a plan."""
    java: Any = session
    parser = java._jsparkSession.sessionState().sqlParser()
    for node in nodes:
        for text in node.relation.sql_texts() if node.relation is not None else ():
            error = _syntax_error(parser, text)
            if error is not None:
                yield translate(plan, node, error)


def _syntax_error(parser: Any, text: SqlText) -> ParseException | None:
    if text.route != QUERY:
        with suppress(ParseException):
            parser.parsePlan(text.text)
            return None
    try:
        (parser.parsePlan if text.route == QUERY else parser.parseExpression)(text.text)
    except ParseException as error:
        return error
    return None

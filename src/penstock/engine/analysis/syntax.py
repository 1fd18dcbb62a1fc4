"""Errors in SQL texts whose columns are unknown: of syntax, and unknown functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from penstock.core.errors import PenstockError
from penstock.engine.analysis.errors import translate
from penstock.engine.analysis.unknown_names import QUERY, unknown_functions
from penstock.engine.lookups.table_checks import registered_names
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk.sql_text import SqlText


def text_errors(
    plan: Plan, nodes: Iterable[Node], session: SparkSession
) -> Iterator[PenstockError]:
    """Yields the errors in the SQL texts of nodes whose inputs are unknown.

    These are the errors of syntax and the unknown functions. The functions of the plan must be
    registered.
    """
    java: Any = session
    parser = java._jsparkSession.sessionState().sqlParser()
    for node in nodes:
        with registered_names(node.checked_tables, session):
            for text in node.sql_texts:
                error = _syntax_error(parser, text)
                if error is not None:
                    yield translate(plan, node, error)
                else:
                    yield from unknown_functions(plan, node, text, session)


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

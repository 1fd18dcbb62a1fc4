"""Checks of the regular expressions in SQL texts. Spark compiles them at the first row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from penstock.core.errors import SqlError
from penstock.engine.analysis.errors import sql_texts
from penstock.engine.catalyst.java_names import java_names
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sql.text.sql import Sql, read_sql

_FUNCTIONS = (
    "regexp", "regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr",
    "regexp_like", "regexp_replace", "regexp_substr", "rlike", "split",
)  # fmt: skip
"""Functions whose second argument is a regular expression."""
_HINT = re.compile("rlike|regexp|split", re.IGNORECASE)


def check_patterns(plan: Plan, node: Node, session: SparkSession) -> None:
    """Raises SqlError at a regular expression in quotes that Java cannot compile."""
    for sql_text in sql_texts(node):
        sql = read_sql(sql_text.text) if _HINT.search(sql_text.text) else None
        if sql is None:
            continue
        for index in _patterns(sql):
            problem = _problem(sql.text[sql[index].start : sql[index].end], session)
            if problem is not None:
                path = (*node.route, *sql_text.route)
                raise SqlError(
                    f"{node.label}: invalid regular expression: {problem}",
                    code="invalid-pattern",
                    where=plan.inside(path, *sql_text.position(sql[index].start)),
                )


def _patterns(sql: Sql) -> Iterator[int]:
    """Yields the tokens that are regular expressions in quotes."""
    for index in range(1, len(sql)):
        is_whole = index + 1 == len(sql) or sql[index + 1].kind != "string"
        if sql.word(index - 1) in ("RLIKE", "REGEXP") and sql[index].kind == "string" and is_whole:
            yield index
    for call in sql.calls(*_FUNCTIONS):
        if len(call.arguments) > 1:
            first, last = call.arguments[1]
            if last - first == 1 and sql[first].kind == "string":
                yield first


def _problem(literal: str, session: SparkSession) -> str | None:
    """Returns the error of a regular expression as written in SQL, or None."""
    parser: Any = session._jsparkSession.sessionState().sqlParser()
    pattern = parser.parseExpression(literal).value().toString()
    try:
        java_names(session).java.util.regex.Pattern.compile(pattern)
    except IllegalArgumentException as error:
        return str(error).splitlines()[0]
    return None

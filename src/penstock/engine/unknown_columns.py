"""Unknown columns of a node: Spark's analysis names the first one only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import PenstockError
from penstock.engine.analysis import error_context, translate
from penstock.engine.syntax import QUERY
from penstock.plan.model import Node, Plan
from penstock.sdk.sql_text import SqlText

_LIMIT = 50
"""The maximum number of unknown columns of a text."""
_CONDITION = "UNRESOLVED_COLUMN"


def unknown_columns(
    plan: Plan,
    node: Node,
    error: AnalysisException,
    inputs: Mapping[str, DataFrame],
    session: SparkSession,
) -> list[PenstockError]:
    """Returns the errors of all unknown columns in the SQL texts of a node, each name once.

    `error` is the error of the first one; no errors are returned if it has another reason.
    """
    if not _is_unknown_column(error) or node.relation is None:
        return []
    found: dict[str, PenstockError] = {}
    for sql in node.relation.sql_texts():
        for each in _analyze(sql, inputs, session):
            translated = translate(plan, node, each)
            found.setdefault(translated.message.casefold(), translated)
    return list(found.values())


def _analyze(
    sql: SqlText, inputs: Mapping[str, DataFrame], session: SparkSession
) -> Iterator[AnalysisException]:
    """Yields the errors of unknown columns of a text.

    After each error a constant of the same length replaces the column.
    """
    text = sql.text
    for _ in range(_LIMIT):
        try:
            if sql.route == QUERY:
                session.sql(text)
            else:
                next(iter(inputs.values())).selectExpr(text)
            return
        except AnalysisException as error:
            index, fragment = error_context(error)
            end = index + len(fragment)
            if not _is_unknown_column(error) or not fragment or text[index:end] != fragment:
                return
            yield error
            text = text[:index] + _constant(len(fragment)) + text[end:]


def _is_unknown_column(error: AnalysisException) -> bool:
    return (error.getCondition() or "").startswith(_CONDITION)


def _constant(length: int) -> str:
    constants = (text for text in ("NULL", "''", "1") if len(text) <= length)
    return next(constants).ljust(length)

"""Analysis errors of Spark, located in the user's pipeline file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import AnalysisException, ParseException, PySparkException, QueryContextType

from penstock.core.errors import PenstockError, PlanError, SqlError, flatten_errors
from penstock.core.location import Location
from penstock.core.text import plural
from penstock.engine.analysis.name_errors import name_error
from penstock.engine.catalyst.deep_queries import locate_overflows, too_deep
from penstock.engine.catalyst.messages import without_column_ids
from penstock.engine.lookups.lookup_errors import SqlLookupError
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.plan.reached_watermarks import find_lost_watermark
from penstock.sdk.sql_text import SqlText, read_sql_text

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_NEAR = re.compile(r"Syntax error at or near '(.+?)'")
_QUERY_ECHO = re.compile(r"\s*(== SQL.*|;\n'.*)", re.DOTALL)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
_STREAMS = re.compile(r"(?:two )?streaming DataFrames?/Data[Ss]ets?")
_PREFIX = re.compile(r"^\[[A-Z_.0-9]+\] ?")


@contextmanager
def collect_errors(errors: dict[str, PenstockError], name: str) -> Iterator[None]:
    """Collects the error of a node instead of raising it."""
    try:
        yield
    except PenstockError as error:
        errors.setdefault(name, error)


@contextmanager
def locate_errors(plan: Plan, node: Node) -> Iterator[None]:
    """Assigns errors raised inside to `node`: adds its location and translates Spark's errors."""
    try:
        with locate_overflows(plan, [node]):
            yield
    except PenstockError as error:
        if isinstance(error, SqlLookupError):
            where = _locate_fragment(plan, node, error.index, error.fragment)
            line, _, _ = error.fragment.partition("\n")
            error.where = where and replace(where, length=len(line))
        for inner in flatten_errors(error):
            inner.where = plan.locate(inner, node)
        raise
    except PySparkException as error:
        raise translate(plan, node, error) from error


@contextmanager
def locate_constant_errors(plan: Plan, nodes: Sequence[Node]) -> Iterator[None]:
    """Assigns errors of Spark's optimizer, as of `1 / 0`, to the node with the failing text."""
    try:
        with locate_overflows(plan, nodes):
            yield
    except PySparkException as error:
        found = [node for node in nodes if _has_fragment(node, error)]
        raise translate(plan, (found or nodes)[0], error) from error


def translate(
    plan: Plan, node: Node, error: PySparkException, where: Location | None = None
) -> PenstockError:
    """Converts an analysis error of Spark to a PenstockError with a location.

    `where` is the location, if it is known.
    """
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    kind = SqlError if any(sql_texts(node)) else PlanError
    where = where or _locate(plan, node, error)
    if condition == "FAILED_TO_PARSE_TOO_COMPLEX":
        return too_deep(plan, node)
    if isinstance(error, ParseException):
        return kind(f"{node.label}: {_sentence(error)}", code="invalid-sql", where=where)
    unknown = name_error(plan, node, error, where, kind)
    if unknown is not None:
        return unknown
    if condition.startswith("ASSIGNMENT_ARITY_MISMATCH"):
        columns = plural(int(parameters["numTarget"]), "column")
        return kind(
            f"{node.label}: the query has {columns}; {parameters['numExpr']} are expected",
            code="column-count", where=where,
            hint="Select as many columns as the table, the view or INSERT has.",
        )  # fmt: skip
    if condition == "USER_RAISED_EXCEPTION":
        problem, _, hint = _sentence(error).partition("; the function is ")
        return kind(
            f"{node.label}: {problem}", code="wrong-arguments", where=where,
            hint=f"The function is {hint}." if hint else None,
        )  # fmt: skip
    if condition.endswith("FUNCTION_WITH_UNSUPPORTED_SYNTAX") and plan.functions:
        return kind(
            f"{node.label}: a user-defined function does not support FILTER, DISTINCT or ORDER BY",
            code="unsupported-sql", where=where,
            hint="Write f(CASE WHEN condition THEN x END), and ignore the nulls in the function.",
        )  # fmt: skip
    if condition == "UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS" or condition.endswith(
        "GENERATOR.OUTSIDE_SELECT"
    ):
        return kind(
            f"{node.label}: rows of a table function are used as a value",
            code="unsupported-generator", where=where,
            hint="Write FROM t, LATERAL f(x) AS r, and use the columns of r.",
        )  # fmt: skip
    if "writeStream.start" in str(error):
        return kind(
            f"{node.label} is not a query", code="unsupported-sql", where=where,
            hint="Write one SELECT. Sinks are separate nodes.",
        )  # fmt: skip
    code = condition.split(".")[0].lower().replace("_", "-").strip("-")
    if not code or code.startswith("legacy-error"):
        code = "unsupported-sql"
    return kind(f"{node.label}: {_sentence(error)}", code=code, where=where)


def streaming_error(plan: Plan, query: Query, error: AnalysisException) -> PenstockError:
    """Returns the error of a query whose root Spark cannot compute as a stream."""
    node = plan.nodes[query.root]
    text = _STREAMS.sub("streams", _sentence(error))
    lost = find_lost_watermark(query.root, plan.nodes)
    if lost is not None and "watermark" in text.lower():
        return lost
    by_batch = [plan.nodes[name] for name in query.stream_nodes if _is_by_batch(plan.nodes[name])]
    if by_batch:
        return PlanError(
            f"{node.label} combines streams, and {by_batch[0].label} upstream is computed on each "
            f"batch: {text}",
            code="different-batches",
            hint=f'Write the rows of "{by_batch[0].name}" to a sink of their own, and combine them '
            "in another pipeline.",
            where=node.where,
        )
    hint = None
    for words, advice in _ADVICE:
        if words in text:
            hint = advice
            break
    watermarks = any(plan.nodes[name].watermark for name in query.stream_nodes)
    if plan.bounded and query.output_mode == "update" and not watermarks:
        hint = "Set mode: append on its sinks, to compute the node from the whole input."
    if "aggregations without watermark" in text:
        text = "without a watermark, a group is never complete"
        if watermarks:
            text = "a group without a window of the event time is never complete"
            hint = (
                "Add a window to GROUP BY, as in GROUP BY window(at, '1 hour') and not only a "
                "field of it, or write to a sink with mode: upsert and primary_key."
            )
    return PlanError(
        f"{node.label} cannot be computed as a stream: {text}",
        code="not-streamable", hint=hint, where=node.where,
    )  # fmt: skip


def semi_join_error(plan: Plan, query: Query) -> PlanError:
    """Returns the error of a semi join of streams that reads groups."""
    node = plan.nodes[query.root]
    return PlanError(
        f"{node.label} cannot be computed as a stream: a semi join of streams reads no groups",
        code="not-streamable",
        hint="Write JOIN, with one row for each key on the right.",
        where=node.where,
    )


def _is_by_batch(node: Node) -> bool:
    return node.batch_scoped


_ADVICE = (
    ("streaming aggregations without watermark",
     "Set a watermark on the source and group by a window of its column, or write to a sink with "
     "mode: upsert and primary_key."),
    ("Sorting is not supported", "Remove ORDER BY, or sort each batch with scope: batch."),
    ("indow function is not supported", "Set scope: batch to use OVER (...) on each batch."),
    ("Non-time-based windows", "Set scope: batch to use OVER (...) on each batch."),
    ("Distinct aggregations", "Compute the aggregates of distinct values in queries of their own, "
     "one for each expression, and string_agg with ORDER BY in another query."),
    ("Except", "Use NOT EXISTS, or set scope: batch to compare each batch."),
    ("WithinWatermark", "Set a watermark on the source, or set within: forever."),
    ("without a watermark", "Set a watermark on both sources and add a time range to the join."),
    ("LIMIT", "Set scope: batch to limit the rows of each batch."),
)  # fmt: skip


def sql_texts(node: Node) -> Sequence[SqlText]:
    """Returns the SQL texts among a node's options."""
    texts = [*node.sql_texts]
    watermark = node.watermark
    if watermark is not None and watermark.expression is not None:
        texts.append(read_sql_text(("watermark", "expression"), watermark.expression))
    if watermark is not None and watermark.bound is not None:
        texts.append(read_sql_text(("watermark", "bound"), watermark.bound))
    return texts


def _locate(plan: Plan, node: Node, error: PySparkException) -> Location | None:
    """Returns the location of an error in the SQL text, or the location of the node."""
    texts = list(sql_texts(node))
    where = _locate_fragment(plan, node, *error_context(error))
    if where is not None:
        return where
    for sql in texts:
        if len(texts) > 1 and f"\n{sql.text.strip()}\n" not in str(error):
            continue
        index = _syntax_error_index(sql, str(error))
        if index is not None:
            path = (*node.route, *sql.route)
            return plan.inside(path, *sql.position(index))
    if len(texts) == 1:
        return plan.inside((*node.route, *texts[0].route), 1, 1)
    return node.where


def _syntax_error_index(sql: SqlText, message: str) -> int | None:
    """Returns the index in a text of the token in a message of Spark's parser; None if unknown.

    Some messages have no position. Their token is found if the text has it once.
    """
    position = _POSITION.search(message)
    if position is not None:
        return sql.index(int(position[1]), int(position[2]) + 1)
    token = _NEAR.search(message)
    if token is None:
        return None
    found = list(re.finditer(rf"(?<!\w){re.escape(token[1])}(?!\w)", sql.text))
    return found[0].start() if len(found) == 1 else None


def _locate_fragment(plan: Plan, node: Node, index: int, fragment: str) -> Location | None:
    """Returns the location of a fragment at an index of the SQL text of a node, or None."""
    for sql in sql_texts(node):
        if fragment and sql.text[index : index + len(fragment)] == fragment:
            return plan.inside((*node.route, *sql.route), *sql.position(index))
    return None


def _has_fragment(node: Node, error: PySparkException) -> bool:
    index, fragment = error_context(error)
    return bool(fragment) and any(
        sql.text[index : index + len(fragment)] == fragment for sql in sql_texts(node)
    )


def error_context(error: PySparkException) -> tuple[int, str]:
    """Returns the index of the failing fragment in its text, and the fragment."""
    for context in error.getQueryContext() or []:
        if context.contextType() is not QueryContextType.SQL:
            continue
        index, fragment = int(context.startIndex()), str(context.fragment())
        if index >= 0 and fragment:
            return index, fragment
    return 0, ""


def _sentence(error: PySparkException) -> str:
    """Returns the first sentence of Spark's message without codes."""
    text = _QUERY_ECHO.sub("", str(error.getMessage() or error))
    text = _SQLSTATE.sub("", _PREFIX.sub("", text.strip()))
    sentence = _POSITION.sub("", text).strip().splitlines()[0].strip().rstrip(".")
    return without_column_ids(sentence)

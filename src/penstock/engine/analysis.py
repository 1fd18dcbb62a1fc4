"""Spark's errors before anything runs, told in terms of the user's file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import AnalysisException, ParseException, PySparkException, QueryContextType

from penstock.core.errors import PenstockError, PlanError, SqlError, each_of
from penstock.core.location import Location
from penstock.core.text import did_you_mean, line_and_column
from penstock.plan.model import Node, Plan

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_QUERY_ECHO = re.compile(r"\s*(== SQL.*|;\n'.*)", re.DOTALL)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
_STREAMS = re.compile(r"(?:two )?streaming DataFrames?/Data[Ss]ets?")
_PREFIX = re.compile(r"^\[[A-Z_.0-9]+\] ?")


@contextmanager
def told(plan: Plan, node: Node) -> Iterator[None]:
    """Errors raised inside belong to `node`: they leave with its place and a clear text."""
    try:
        yield
    except PenstockError as error:
        for each in each_of(error):
            each.where = plan.place_of(each, node)
        raise
    except PySparkException as error:
        raise translate(plan, node, error) from error


def translate(plan: Plan, node: Node, error: PySparkException) -> PenstockError:
    """An analysis error of Spark's as ours."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    kind = SqlError if any(texts(node)) else PlanError
    where = _where(plan, node, error)
    if isinstance(error, ParseException):
        return kind(f"{node.label}: {_sentence(error)}", code="sql-syntax", where=where)
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "").replace("`", "")
        near = [each.strip("` ") for each in parameters.get("proposal", "").split(",") if each]
        return kind(
            f'{node.label}: there is no column "{name}"', code="unknown-column",
            hint=did_you_mean(name.split(".")[-1], [n.replace("`", "") for n in near]),
            where=_mark(where, name),
        )  # fmt: skip
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = parameters.get("routineName", "").replace("`", "").split(".")[-1]
        return kind(
            f'{node.label}: there is no function "{name}"', code="unknown-function",
            where=_mark(where, name),
        )  # fmt: skip
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = parameters.get("relationName", "").replace("`", "")
        known = [n for n, each in plan.nodes.items() if each.kind != "sink"]
        return kind(
            f'{node.label}: there is no source or transform "{name}"', code="unknown-node",
            hint=did_you_mean(name, known), where=_mark(where, name),
        )  # fmt: skip
    if "writeStream.start" in str(error):
        return kind(
            f"{node.label} is not a query", code="unsupported-sql", where=where,
            hint="write one SELECT; sinks are nodes of their own",
        )  # fmt: skip
    code = condition.split(".")[0].lower().replace("_", "-").strip("-")
    if not code or code.startswith("legacy-error"):
        code = "unsupported-sql"
    return kind(f"{node.label}: {_sentence(error)}", code=code, where=where)


def not_streamable(plan: Plan, node: Node, error: AnalysisException) -> PenstockError:
    """Why Spark cannot compute this as a stream."""
    text = _STREAMS.sub("streams", _sentence(error))
    hint = None
    for words, advice in _ADVICE:
        if words in text:
            hint = advice
            break
    if "aggregations without watermark" in text:
        text = "without a watermark no group is ever complete"
    return PlanError(
        f"{node.label} cannot be computed as a stream: {text}",
        code="not-streamable", hint=hint, where=node.where,
    )  # fmt: skip


_ADVICE = (
    ("streaming aggregations without watermark",
     "give the source a watermark and group by a window of its column, or write to a sink "
     "that can replace rows with mode: upsert and primary_key"),
    ("Sorting is not supported", "leave out ORDER BY, or sort each batch with scope: batch"),
    ("indow function is not supported", "OVER (...) works on each batch, with scope: batch"),
    ("Non-time-based windows", "OVER (...) works on each batch, with scope: batch"),
    ("Distinct aggregations", "use approx_count_distinct, or dedupe before counting"),
    ("Except", "write NOT EXISTS, or compare batch by batch with scope: batch"),
    ("WithinWatermark", "give the source a watermark, or remember rows with within: forever"),
    ("without a watermark", "give both sources a watermark and add a time range to the join"),
    ("LIMIT", "take rows of each batch with scope: batch"),
)  # fmt: skip


def texts(node: Node) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The SQL texts among a node's options, and where in the node they stand."""
    config = node.component.config
    for key in ("sql", "where", "set", "columns"):
        given = getattr(config, key, None)
        if isinstance(given, str):
            yield (key,), given
        elif isinstance(given, dict):
            yield from (((key, name), str(text)) for name, text in given.items())
        elif isinstance(given, list):
            yield from (((key, number), str(text)) for number, text in enumerate(given))


def _where(plan: Plan, node: Node, error: PySparkException) -> Location | None:
    """The place in the SQL text that Spark complains about; the node where it cannot be told."""
    given = list(texts(node))
    index, fragment = _context(error)
    for route, text in given:
        place = (f"{node.kind}s", node.name, *route)
        if fragment and text[index : index + len(fragment)] == fragment:
            return plan.inside(place, *line_and_column(text, index))
        found = _POSITION.search(str(error))
        if found and (len(given) == 1 or f"\n{text.strip()}\n" in str(error)):
            return plan.inside(place, int(found[1]), int(found[2]) + 1)
    if len(given) == 1:
        return plan.inside((f"{node.kind}s", node.name, *given[0][0]), 1, 1)
    return node.where


def _context(error: PySparkException) -> tuple[int, str]:
    """Where in its text the failing part begins, and the part."""
    for context in error.getQueryContext() or []:
        if context.contextType() is not QueryContextType.SQL:
            continue
        index, fragment = int(context.startIndex()), str(context.fragment())
        if index >= 0 and fragment:
            return index, fragment
    return 0, ""


def _mark(where: Location | None, name: str) -> Location | None:
    if where is None:
        return None
    here = where.text[where.column - 1 :]
    last = name.split(".")[-1]
    for candidate in (name, last):
        at = here.lower().find(candidate.lower())
        if 0 <= at <= 40:
            return replace(where, column=where.column + at, length=len(candidate))
    return where


def _sentence(error: PySparkException) -> str:
    """The first, telling part of Spark's message."""
    text = _QUERY_ECHO.sub("", str(error.getMessage() or error))
    text = _SQLSTATE.sub("", _PREFIX.sub("", text.strip()))
    return _POSITION.sub("", text).strip().splitlines()[0].strip().rstrip(".")

"""Diagnosis of failed queries: turns errors of Spark into errors of Penstock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.core.error_codec import decode
from penstock.core.errors import PenstockError, StateError, Transient
from penstock.core.text import shorten
from penstock.engine.analysis import sql_texts
from penstock.engine.data_errors import data_error
from penstock.engine.messages import without_column_ids
from penstock.plan.model import Node, Plan, Query
from penstock.sdk.sql_text import SqlText

_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9.]{3,})\]\s*(.*)")
_PYTHON = re.compile(
    r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Exit))\s*:\s*(.+)$", re.MULTILINE
)
_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n\s*\^+", re.DOTALL)
_TRANSIENT = (
    "ExecutorLostFailure", "Connection reset", "Broken pipe", "worker exited unexpectedly",
    "Python worker failed to connect", "java.io.OptionalDataException",
)  # fmt: skip


def diagnose(plan: Plan, query: Query, error: BaseException) -> PenstockError:
    """Returns the error of a failed query, with its location in the user's file if known."""
    cause = next((e for e in _chain(error) if isinstance(e, PenstockError)), None)
    texts = [str(link) for link in _chain(error)]
    for text in texts:
        cause = cause or decode(text)
    if cause is not None:
        return _with_location(plan, query, cause)
    for link in _chain(error):
        record_error = data_error(link)
        if record_error is not None:
            code, message = record_error.code, record_error.message
            return _value_error(plan, query, code, message, "\n".join(texts))
    return _text_error(plan, query, "\n".join(texts))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and all its causes and contexts."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop(0)
        if isinstance(link, BaseException) and id(link) not in seen:
            seen.add(id(link))
            yield link
            pending += [getattr(link, "_cause", None), link.__cause__, link.__context__]


def _with_location(plan: Plan, query: Query, error: PenstockError) -> PenstockError:
    if error.where is None:
        members = (*query.stream_nodes, *query.batch_nodes, *query.sinks)
        names = [
            n for n in members if f'"{n}"' in error.message or error.message.startswith(f"{n}:")
        ]
        if names:
            error.where = plan.nodes[names[0]].where
    return error


def _value_error(plan: Plan, query: Query, code: str, message: str, text: str) -> PenstockError:
    """Returns the error of a SQL expression whose record cannot be identified."""
    node, where = _sql_node(plan, query, text), None
    if node is not None:
        where = node.where
        fragment = _FRAGMENT.search(text)
        for sql in sql_texts(node):
            if fragment and (index := _index(sql, text)) is not None:
                path = ("transforms", node.name, *sql.route)
                where = plan.inside(path, *sql.position(index))
    name = node.label if node else f'query "{query.name}"'
    return PenstockError(
        f"{name}: {message}",
        code=code,
        where=where,
        detail="The failing record cannot be identified after an aggregation or join.",
        hint="Use try_cast, try_divide or try_to_timestamp, or filter the rows before.",
    )


def _index(sql: SqlText, text: str) -> int | None:
    """Returns the index of the failing expression in the SQL text, from Spark's message."""
    match = re.search(r"\(line (\d+), position (\d+)\)", text)
    return sql.index(int(match[1]), int(match[2])) if match else None


def _sql_node(plan: Plan, query: Query, text: str) -> Node | None:
    fragment = _FRAGMENT.search(text)
    nodes = [
        plan.nodes[n] for n in (*query.stream_nodes, *query.batch_nodes) if plan.nodes[n].relation
    ]
    with_text = [n for n in nodes if hasattr(n.component.config, "sql")]
    if fragment:
        echo = fragment[1].strip().splitlines()[0].strip()
        for node in with_text:
            if echo and any(echo in sql.text for sql in sql_texts(node)):
                return node
    return with_text[0] if len(with_text) == 1 else None


def _text_error(plan: Plan, query: Query, text: str) -> PenstockError:
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return StateError(
            f"a disk is full, probably the disk of {plan.state}",
            code="disk-full",
            hint="Free disk space and run again. The run resumes.",
        )
    if any(words in text for words in _TRANSIENT):
        return Transient(
            f'query "{query.name}" lost a worker', code="lost-worker", detail=_first_line(text)
        )
    raised = _PYTHON.findall(text)
    python = [f"{name}: {message}" for name, message in raised if "Py4J" not in name]
    conditions = [
        (name, message)
        for name, message in _CONDITION.findall(text)
        if name not in ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")
        and "Traceback" not in message
    ]
    if conditions:
        name, reason = conditions[-1]
        reason = without_column_ids(reason)
        code = name.split(".")[0].lower().replace("_", "-")
    elif python:
        code, reason = "python-error", python[-1]
    else:
        code, reason = "query-failed", _first_line(text)
    return PenstockError(
        f'query "{query.name}" failed: {shorten(reason, 300)}',
        code=code,
        hint="See spark.log in the state directory.",
    )


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return shorten(lines[0], 300) if lines else "no reason given"

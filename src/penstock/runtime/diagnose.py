"""Diagnosis of failed queries: turns errors of Spark into errors of Penstock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.core.error_codec import decode
from penstock.core.errors import PenstockError, StateError, Transient
from penstock.core.location import Location
from penstock.core.text import shorten
from penstock.engine.analysis.errors import sql_texts
from penstock.engine.catalyst.deep_queries import OVERFLOW, PROBLEM
from penstock.engine.catalyst.messages import without_column_ids
from penstock.engine.row_checks.data_errors import data_error
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.sql.text.nesting import SPLIT, TOO_DEEP

_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9.]{3,})\]\s*(.*)")
_PYTHON = re.compile(
    r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Exit))\s*:\s*(.+)$", re.MULTILINE
)
_QUOTED = re.compile(r"== SQL[^\n]*\(line (\d+), position (\d+)\)[^\n]*==\n([^\n]+)")
OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
_TRANSIENT = (
    "ExecutorLostFailure", "Connection reset", "Broken pipe", "worker exited unexpectedly",
    "Python worker failed to connect", "java.io.OptionalDataException", "FetchFailedException",
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND", "Failed to get broadcast_",
)  # fmt: skip
"""Errors of lost processes: also of rows of a shuffle, of a checkpoint, or of a broadcast there."""
_ON_EXECUTOR = re.compile(
    r"\((\S+ executor \d+)\): (?:(?!Driver stacktrace).)*?(?:No space left|quota exceeded)",
    re.DOTALL,
)


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
    if error.where is None and error.node is not None and error.node in plan.nodes:
        error.where = plan.locate(error, plan.nodes[error.node])
    if error.where is None:
        members = (*query.stream_nodes, *query.batch_nodes, *query.sinks)
        names = [
            n for n in members if f'"{n}"' in error.message or error.message.startswith(f"{n}:")
        ]
        if names:
            error.where = plan.nodes[names[0]].where
    return error


def _value_error(plan: Plan, query: Query, code: str, message: str, text: str) -> PenstockError:
    """Returns the error of a SQL expression whose record cannot be isolated."""
    found = next(_failing_expressions(plan, query, text), None)
    node = found[0] if found else _only_relation(plan, query)
    where = found[1] if found else None
    if where is None:
        where = (node or plan.nodes[query.root]).where
    name = node.label if node else f'query "{query.name}"'
    if node is not None and node.on_error == "fail":
        detail = None
        hint = "Use try_cast, try_divide or try_to_timestamp, or filter the rows before."
    elif code == "arithmetic-overflow":
        detail = "The failing record cannot be identified in a join or an aggregation."
        hint = (
            "Use try_sum, filter the rows before, or reset a state of an earlier version with "
            "--fresh, as its sums of BIGINT are not exact."
        )
    else:
        detail = "The failing record cannot be identified in a join or after an aggregation."
        hint = (
            "Compute the expression in a transform of its own, or use try_cast, try_divide or "
            "try_to_timestamp."
        )
    return PenstockError(f"{name}: {message}", code=code, where=where, detail=detail, hint=hint)


def _failing_expressions(
    plan: Plan, query: Query, text: str
) -> Iterator[tuple[Node, Location | None]]:
    """Yields the nodes and the locations of the expression that Spark's message quotes."""
    quoted = _QUOTED.search(text)
    if quoted is None:
        return
    line, position, quote = int(quoted[1]), int(quoted[2]), quoted[3].strip().strip(".").strip()
    for name in (*query.stream_nodes, *query.batch_nodes):
        node = plan.nodes[name]
        for sql in sql_texts(node):
            lines = sql.text.split("\n")
            if line <= len(lines) and quote in lines[line - 1]:
                path = (*node.route, *sql.route)
                yield node, plan.inside(path, *sql.position(sql.index(line, position)))


def _only_relation(plan: Plan, query: Query) -> Node | None:
    """Returns the only node of a query with SQL, or None."""
    nodes = [plan.nodes[name] for name in (*query.stream_nodes, *query.batch_nodes)]
    with_sql = [node for node in nodes if any(sql_texts(node))]
    return with_sql[0] if len(with_sql) == 1 else None


def _text_error(plan: Plan, query: Query, text: str) -> PenstockError:
    if (found := _ON_EXECUTOR.search(text)) is not None:
        return Transient(
            f'query "{query.name}": a disk of {found[1]} is full',
            code="disk-full",
            hint="Free disk space there.",
        )
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return StateError(
            f"a disk is full, probably the disk of {plan.state}",
            code="disk-full",
            hint="Free disk space and run again. The run resumes.",
        )
    if OUT_OF_MEMORY in text:
        return PenstockError(
            f'query "{query.name}" has exhausted the memory of Java',
            code="out-of-memory",
            where=plan.nodes[query.root].where,
            hint="Increase runtime.memory.",
        )
    if OVERFLOW in text:
        where = plan.nodes[query.root].where
        message = f'query "{query.name}": {PROBLEM}'
        return PenstockError(message, code=TOO_DEEP, where=where, hint=SPLIT)
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
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = [lines[1].removeprefix(": ")]
    return shorten(lines[0], 300) if lines else "no reason given"

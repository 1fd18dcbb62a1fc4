"""Why a query failed: from Spark's text to an error that a user can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.core.errors import PenstockError, StateError, Transient, decode
from penstock.core.text import line_and_column, shorten
from penstock.engine.bisect import data_error
from penstock.plan.model import Node, Plan, Query

_CONDITION = re.compile(r"\[([A-Z][A-Z_0-9.]{3,})\]\s*(.*)")
_PYTHON = re.compile(
    r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Exit))\s*:\s*(.+)$", re.MULTILINE
)
_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(.*?)\n\s*\^+", re.DOTALL)
_PASSING = ("ExecutorLostFailure", "Connection reset", "Broken pipe", "worker exited unexpectedly",
            "Python worker failed to connect", "java.io.OptionalDataException")  # fmt: skip


def diagnose(plan: Plan, query: Query, error: BaseException) -> PenstockError:
    """The error of a query that stopped, with the place in the user's file where it is known."""
    found = next((e for e in _chain(error) if isinstance(e, PenstockError)), None)
    texts = [str(each) for each in _chain(error)]
    for text in texts:
        found = found or decode(text)
    if found is not None:
        return _placed(plan, query, found)
    for each in _chain(error):
        bad = data_error(each)
        if bad is not None:
            return _of_value(plan, query, bad.code, bad.message, "\n".join(texts))
    return _of_text(plan, query, "\n".join(texts))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything behind it."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop(0)
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            pending += [getattr(each, "_cause", None), each.__cause__, each.__context__]


def _placed(plan: Plan, query: Query, error: PenstockError) -> PenstockError:
    if error.where is None:
        members = (*query.within, *query.below, *query.sinks)
        named = [
            n for n in members if f'"{n}"' in error.message or error.message.startswith(f"{n}:")
        ]
        if named:
            error.where = plan.nodes[named[0]].where
    return error


def _of_value(plan: Plan, query: Query, code: str, message: str, text: str) -> PenstockError:
    """SQL failed on a value and no record can be blamed: rows are remembered above."""
    node, where = _sql_node(plan, query, text), None
    if node is not None:
        where = node.where
        fragment = _FRAGMENT.search(text)
        sql = str(getattr(node.component.config, "sql", ""))
        if fragment and (index := _index(sql, text)) is not None:
            where = plan.inside(("transforms", node.name, "sql"), *line_and_column(sql, index))
    name = node.label if node else f'query "{query.name}"'
    return PenstockError(
        f"{name}: {message}",
        code=code,
        where=where,
        hint="the rows are aggregated or joined, so the record cannot be told: use try_cast, "
        "try_divide or a filter above",
    )


def _index(sql: str, text: str) -> int | None:
    """Where in the query the failing expression stands, from the marks below Spark's echo."""
    found = re.search(r"\(line (\d+), position (\d+)\)", text)
    if not found:
        return None
    lines = sql.split("\n")
    line = min(int(found[1]), len(lines))
    return sum(len(each) + 1 for each in lines[: line - 1]) + int(found[2]) - 1


def _sql_node(plan: Plan, query: Query, text: str) -> Node | None:
    fragment = _FRAGMENT.search(text)
    nodes = [plan.nodes[n] for n in (*query.within, *query.below) if plan.nodes[n].relation]
    with_text = [n for n in nodes if hasattr(n.component.config, "sql")]
    if fragment:
        echo = fragment[1].strip().splitlines()[0].strip()
        for node in with_text:
            if echo and echo in str(node.component.config.sql):
                return node
    return with_text[0] if len(with_text) == 1 else None


def _of_text(plan: Plan, query: Query, text: str) -> PenstockError:
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return StateError(
            f"the disk is full, as it seems that of {plan.state}",
            code="disk-full",
            hint="make room and run again: it resumes",
        )
    if any(words in text for words in _PASSING):
        return Transient(
            f'query "{query.name}" lost a worker', code="lost-worker", detail=_last(text)
        )
    raised = _PYTHON.findall(text)
    python = [f"{name}: {message}" for name, message in raised if "Py4J" not in name]
    condition = [
        m
        for m in _CONDITION.findall(text)
        if m[0] not in ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")
        and "Traceback" not in m[1]
    ]
    if condition:
        name, message = condition[-1]
        code, said = name.split(".")[0].lower().replace("_", "-"), message
    elif python:
        code, said = "python-error", python[-1]
    else:
        code, said = "query-failed", _last(text)
    return PenstockError(
        f'query "{query.name}" failed: {shorten(said, 300)}',
        code=code,
        hint="spark.log in the state directory has Spark's own words",
    )


def _last(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return shorten(lines[0], 300) if lines else "no reason given"

"""Errors of unknown names in SQL, from Spark's analysis: columns, fields, functions, tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException

from penstock.core.errors import PenstockError, PlanError, SqlError
from penstock.core.location import Location
from penstock.core.text import did_you_mean, nearest
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sql.dialect.table_checks import NAME as CHECK
from penstock.sql.dialect.window_calls import WINDOWS
from penstock.sql.functions import BUILTINS

REPLACEMENT = "NULL"
"""The text that replaces an unknown column, to find further ones."""
_WIDTH = 40
"""The maximum number of characters between the start of a fragment and its unknown name."""


def name_error(
    plan: Plan, node: Node, error: PySparkException, where: Location | None, kind: type[SqlError]
    | type[PlanError],
) -> PenstockError | None:  # fmt: skip
    """Returns the error of an unknown name, or None for an error of another reason."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = parameters.get("objectName", "").replace("`", "")
        mark = _mark(where, name)
        return kind(
            f'{node.label}: there is no column "{name}"', code="unknown-column",
            hint=_column_hint(name, _names(parameters.get("proposal", "")), mark), where=mark,
        )  # fmt: skip
    if condition == "FIELD_NOT_FOUND":
        name = parameters.get("fieldName", "").replace("`", "")
        return kind(
            f'{node.label}: there is no field "{name}"', code="unknown-field",
            hint=did_you_mean(name, _names(parameters.get("fields", ""))), where=_mark(where, name),
        )  # fmt: skip
    if condition.startswith(("UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE_VALUED_FUNCTION")):
        name = function_name(error)
        if name.partition(" ")[0].lower() == CHECK:
            return SqlError(
                f"{node.label}: {CHECK} is called outside of the SQL of a transform",
                code="unknown-function", where=where,
                hint="Call it in a transform, and not in a function or a watermark.",
            )  # fmt: skip
        return SqlError(
            f'{node.label}: there is no function "{name}"', code="unknown-function",
            hint=did_you_mean(name, _functions(plan, name)), where=_mark(where, name),
        )  # fmt: skip
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = parameters.get("relationName", "").replace("`", "")
        nodes = plan.nodes.values()
        known = [known.name for known in nodes if known.kind != "sink" and known.is_named]
        return kind(
            f'{node.label}: there is no source or transform "{name}"', code="unknown-node",
            hint=did_you_mean(name, known), where=_mark(where, name),
        )  # fmt: skip
    return None


def function_name(error: PySparkException) -> str:
    """Returns the name in the error of an unknown function, without its schema."""
    parameters = error.getMessageParameters() or {}
    routine = parameters.get("routineName") or parameters.get("name") or ""
    return routine.replace("`", "").split(".")[-1]


def nearest_function(plan: Plan, name: str) -> str | None:
    """Returns the function nearest to a name, of those that Spark has."""
    found = nearest(name, _functions(plan, name))
    return None if found in WINDOWS else found


def _functions(plan: Plan, name: str) -> Sequence[str]:
    own = [function.name for function in plan.functions]
    return own if nearest(name, own) else [*BUILTINS, *WINDOWS, CHECK]


def _names(listed: str) -> list[str]:
    """Returns the names in a parameter of a message of Spark, without replaced columns."""
    names = (name.strip() for name in listed.replace("`", "").split(","))
    return [name for name in names if name and name.rpartition(".")[2] != REPLACEMENT]


def _column_hint(name: str, proposals: Sequence[str], where: Location | None) -> str | None:
    """Returns the nearest column, or the quotes of a text for a name in double quotes.

    The column of a qualified name has the same qualifier, if there is one.
    """
    qualifier, _, last = name.rpartition(".")
    before = where.text[: where.column - 1] if where is not None else ""
    after = where.text[where.column - 1 + where.length :] if where is not None else ""
    quoted = before.endswith('"') and after.startswith('"') and not before.endswith('."')
    same = [each for each in proposals if each.rpartition(".")[0].lower() == qualifier.lower()]
    for candidates in (same, proposals):
        close = _nearest_column(last, candidates)
        if close is not None:
            return f'did you mean "{close}"?'
    if quoted:
        return f"Write '{name}' for a text: double quotes enclose names."
    return did_you_mean(last, proposals)


def _nearest_column(name: str, proposals: Iterable[str]) -> str | None:
    """Returns the proposal whose last part is nearest to a name."""
    by_last: dict[str, str] = {}
    for proposal in proposals:
        by_last.setdefault(proposal.rpartition(".")[2], proposal)
    close = nearest(name, by_last)
    return None if close is None else by_last[close]


def _mark(where: Location | None, name: str) -> Location | None:
    """Returns the location of a name soon after `where`, or `where`."""
    if where is None:
        return None
    line = where.text[where.column - 1 :]
    last = name.split(".")[-1]
    for candidate in (name, last):
        found = re.search(rf"(?<!\w){re.escape(candidate)}(?!\w)", line, re.IGNORECASE)
        if found is not None and found.start() <= _WIDTH:
            return replace(where, column=where.column + found.start(), length=len(candidate))
    return where

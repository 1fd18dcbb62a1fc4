"""Unknown columns, fields and functions of a node: Spark's analysis names the first one only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import PenstockError
from penstock.engine.analysis.errors import error_context, translate
from penstock.engine.analysis.name_errors import REPLACEMENT, function_name, nearest_function
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk.sql_text import SqlText
from penstock.sql.dialect.window_calls import WINDOWS
from penstock.sql.text.edits import Edit, Translation

QUERY = ("sql",)
"""The route of a text that is a query. Others are expressions or queries."""
_LIMIT = 50
"""The maximum number of unknown names of a text."""
_COLUMNS = ("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")
_TABLE_FUNCTIONS = "UNRESOLVABLE_TABLE_VALUED_FUNCTION"
_CALLS = ("UNRESOLVED_ROUTINE", _TABLE_FUNCTIONS)
_GROUPS = re.compile(r"\b(GROUP|HAVING)\b", re.IGNORECASE)
_SELECT = re.compile(r"\bSELECT\b", re.IGNORECASE)
_NAME = re.compile(r"[^(]+")


def unknown_names(
    plan: Plan,
    node: Node,
    error: AnalysisException,
    inputs: Mapping[str, DataFrame],
    session: SparkSession,
) -> list[PenstockError]:
    """Returns the errors of all unknown names in the SQL texts of a node.

    A name that occurs several times is reported once, at its first place. `error` is the error of
    the first one; no errors are returned if it has another reason.
    """
    condition = error.getCondition() or ""
    if not condition.startswith((*_COLUMNS, *_CALLS)):
        return []
    repairs = (_Repair(plan, node, sql, inputs, session) for sql in node.sql_texts)
    return _each_once(error for repair in repairs for error in repair.errors())


def unknown_functions(
    plan: Plan, node: Node, sql: SqlText, session: SparkSession
) -> list[PenstockError]:
    """Returns the errors of the unknown functions in a text whose input is unknown."""
    repair = _Repair(plan, node, sql, {"": session.sql("SELECT 1")}, session, has_inputs=False)
    return _each_once(repair.errors())


def _each_once(errors: Iterable[PenstockError]) -> list[PenstockError]:
    """Returns of several errors with the same message the first in the file."""
    found: dict[str, PenstockError] = {}
    for error in errors:
        first = found.setdefault(error.message.casefold(), error)
        if _place(error) < _place(first):
            found[error.message.casefold()] = error
    return list(found.values())


def _place(error: PenstockError) -> tuple[int, int]:
    where = error.where
    return (where.line, where.column) if where is not None else (0, 0)


@dataclass
class _Repair:
    """The analysis of a text that is repaired after each error of an unknown name.

    NULL replaces a column, and the function with the nearest name a function. The analysis ends at
    an error of another kind, and at one that a replacement may have caused.
    """

    plan: Plan
    node: Node
    sql: SqlText
    inputs: Mapping[str, DataFrame]
    session: SparkSession
    has_inputs: bool = True
    """Whether the inputs are known. Without them only unknown functions are found."""
    _text: Translation = field(init=False)
    _names: set[str] = field(default_factory=set)
    """The last parts of the names of unknown columns."""
    _has_new_functions: bool = False

    def __post_init__(self) -> None:
        self._text = Translation.of(self.sql.text)

    def errors(self) -> Iterator[PenstockError]:
        """Yields the errors of unknown names."""
        for _ in range(_LIMIT):
            error = self._analyze()
            if error is None:
                return
            condition = error.getCondition() or ""
            index, fragment = error_context(error)
            if self._text.text[index : index + len(fragment)] != fragment:
                return
            if condition.startswith(_COLUMNS) and self.has_inputs:
                is_consequence = self._is_consequence(error, condition)
                edits = [Edit(index, index + len(fragment), REPLACEMENT)]
            elif condition.startswith(_CALLS):
                is_consequence = function_name(error).lower() in WINDOWS  # not translated yet
                edits = self._new_function(error, index, fragment)
            else:
                return
            if is_consequence is None or not self._is_written(edits):
                return
            if not is_consequence:
                place = self.sql.position(self._text.origin(index))
                where = self.plan.inside((*self.node.route, *self.sql.route), *place)
                yield translate(self.plan, self.node, error, where)
            if condition.startswith(_TABLE_FUNCTIONS):
                return
            self._text = self._text.edit(edits)

    def _analyze(self) -> AnalysisException | None:
        text = self._text.text
        try:
            if self.sql.route == QUERY:
                self.session.sql(text)
            else:
                next(iter(self.inputs.values())).selectExpr(text)
        except AnalysisException as error:
            return error
        return None

    def _is_consequence(self, error: AnalysisException, condition: str) -> bool | None:
        """Returns whether a column is unknown because another one is; None if it may be known.

        An outer query reads an unknown column of a subquery. A column beside groups may be known:
        a new function may be no aggregate.
        """
        if condition == "FIELD_NOT_FOUND":
            return False
        name = (error.getMessageParameters() or {}).get("objectName", "").replace("`", "")
        parts = name.casefold().split(".")
        text = self.sql.text
        is_nested = len(_SELECT.findall(text)) > 1
        if is_nested and not self._names.isdisjoint(parts):
            return True
        is_word = re.fullmatch(r"\w+", parts[-1]) is not None
        if self._has_new_functions and (not is_word or _GROUPS.search(text)):
            known = {column.casefold() for rows in self.inputs.values() for column in rows.columns}
            places = re.findall(rf"(?<!\w){re.escape(parts[-1])}(?!\w)", text, re.IGNORECASE)
            if parts[-1] in known or (is_nested and len(places) > 1):
                return None
        self._names.add(parts[-1])
        return False

    def _new_function(self, error: AnalysisException, index: int, call: str) -> list[Edit]:
        """Returns the edits that replace a call by one of a known function, or by NULL.

        NULL keeps the arguments, whose errors are found later.
        """
        self._has_new_functions = True
        match = _NAME.match(call)
        end = index + (match.end() if match else 0)
        name = nearest_function(self.plan, function_name(error))
        if name is not None:
            return [Edit(index, end, name)]
        last = index + len(call)
        if not call.removeprefix(match[0] if match else "").strip("() "):
            return [Edit(index, last, REPLACEMENT)]
        is_null = " IS NULL THEN NULL END"
        return [Edit(index, end, "CASE WHEN struct"), Edit(last, last, is_null)]

    def _is_written(self, edits: list[Edit]) -> bool:
        """Returns whether the text that the first edit replaces is a part of the user's text."""
        start, end, _ = edits[0]
        first = self._text.origin(start)
        return self.sql.text[first : first + end - start] == self._text.text[start:end]

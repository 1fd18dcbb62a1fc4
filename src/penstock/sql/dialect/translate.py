"""Translation of a SQL text, as far as it depends on no other node."""

from __future__ import annotations

from functools import lru_cache

from penstock.sql.datafusion.rules import RULES
from penstock.sql.dialect import calendar_windows, java_calls, outputs, table_checks
from penstock.sql.text.edits import DialectError, Edit, Translation, without_overlaps
from penstock.sql.text.nesting import TOO_DEEP, check_nesting
from penstock.sql.text.sql import read_sql

_RULES = (java_calls.edits, outputs.edits, calendar_windows.edits, table_checks.edits, *RULES)
_MAX_ROUNDS = 200
"""More than the depth of nested calls in any query."""
_MAX_ARGUMENTS = 4
"""The most arguments of a function with a fixed number of them."""
_MAX_GROWTH = 20
"""Of the text. A rule may repeat an argument, and nested calls of it grow exponentially."""
_GROWN_FROM = 5_000
"""Characters below which a text may grow more."""


@lru_cache(maxsize=1024)
def translate(text: str) -> Translation:
    """Returns a query or expression in Spark SQL. A text that is Spark SQL remains as it is.

    Raises DialectError at a part without a translation. A text with an unclosed quote remains as it
    is: Spark reports the error.
    """
    check_nesting(text)
    translation = Translation.of(text)
    sql = read_sql(text)
    for rule in _RULES:
        for _ in range(_MAX_ROUNDS):
            if sql is None:
                return Translation.of(text)
            try:
                edits = without_overlaps(rule(sql))
            except DialectError as error:
                raise error.moved(translation) from None
            if not edits:
                break
            edited = translation.edit(edits)
            if len(edited.text) > _MAX_GROWTH * max(len(text), _GROWN_FROM):
                raise _too_long(edits[0]).moved(translation)
            translation = edited
            sql = read_sql(translation.text)
    return translation


def _too_long(edit: Edit) -> DialectError:
    message = "the translation of the nested calls is too long"
    hint = "Compute the inner calls in a subquery."
    return DialectError(message, edit.start, edit.end, hint, TOO_DEEP)


def is_translated(function: str) -> bool:
    """Returns whether calls of a function have another form in Spark SQL, or none."""
    for count in range(_MAX_ARGUMENTS + 1):
        call = f"{function}({', '.join(['a'] * count)})"
        try:
            if translate(call).text != call:
                return True
        except DialectError:
            return True
    return False

"""Translation of a SQL text, as far as it depends on no other node."""

from __future__ import annotations

from functools import lru_cache

from penstock.sql.dialect.nesting import check_nesting
from penstock.sql.dialect.rules import RULES
from penstock.sql.dialect.text import DialectError, Translation, without_overlaps
from penstock.sql.dialect.tokens import read_sql

_MAX_ROUNDS = 200
"""More than the depth of nested calls in any query."""
_MAX_ARGUMENTS = 4
"""The most arguments of a function with a fixed number of them."""


@lru_cache(maxsize=1024)
def translate(text: str) -> Translation:
    """Returns a query or expression in Spark SQL. A text that is Spark SQL remains as it is.

    Raises DialectError at a part without a translation. A text with an unclosed quote remains as it
    is: Spark reports the error.
    """
    check_nesting(text)
    translation = Translation.of(text)
    sql = read_sql(text)
    for rule in RULES:
        for _ in range(_MAX_ROUNDS):
            if sql is None:
                return Translation.of(text)
            try:
                edits = without_overlaps(rule(sql))
            except DialectError as error:
                raise error.moved(translation) from None
            if not edits:
                break
            translation = translation.edit(edits)
            sql = read_sql(translation.text)
    return translation


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

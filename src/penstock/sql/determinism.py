"""Determinism of SQL: whether the same rows always have the same result."""

from __future__ import annotations

import re

from penstock.sql.functions import (
    CLOCKS,
    CLOCKS_WITHOUT_ARGUMENTS,
    CLOCKS_WITHOUT_PARENTHESES,
    NONDETERMINISTIC,
)
from penstock.sql.text.calls import called_functions
from penstock.sql.text.sql import read_sql
from penstock.sql.user_functions import NO_FUNCTIONS, UserFunctions

_MOMENT = re.compile(
    r"\b(?:timestamp|timestamp_ltz|timestamp_ntz|date)\s*(['\"])\s*(?:now|today|tomorrow|yesterday)\b",
    re.IGNORECASE,
)


def deterministic(*texts: str, functions: UserFunctions = NO_FUNCTIONS) -> bool:
    """Returns whether queries or expressions have the same result for the same rows."""
    random = functions.nondeterministic
    return not any(_is_random(text, random) or reads_clock(text) for text in texts)


def has_chance(text: str) -> bool:
    """Returns whether the text calls a function of chance, or samples rows.

    A text without valid tokens counts as such.
    """
    return samples_rows(text) or not NONDETERMINISTIC.isdisjoint(called_functions(text))


def samples_rows(text: str) -> bool:
    """Returns whether the text has TABLESAMPLE, or no valid tokens."""
    sql = read_sql(text)
    return sql is None or any(token.word == "TABLESAMPLE" for token in sql.tokens)


def _is_random(text: str, random: frozenset[str]) -> bool:
    """Returns whether the text calls a function of chance or of the current time."""
    sql = read_sql(text)
    if sql is None or has_chance(text):
        return True
    names = (token.value.lower() for token in sql.tokens if token.kind != "string")
    if not CLOCKS_WITHOUT_PARENTHESES.isdisjoint(names):
        return True
    if not (CLOCKS | random).isdisjoint(called_functions(text)):
        return True
    return not CLOCKS_WITHOUT_ARGUMENTS.isdisjoint(called_functions(text, arguments=False))


def reads_clock(text: str) -> bool:
    """Returns whether the text has `TIMESTAMP 'now'` or the like, a constant in Spark's plan."""
    return _MOMENT.search(text) is not None

"""Errors of SQL that reads a lookup table, at their place in the SQL."""

from __future__ import annotations

from typing import Any

from penstock.core.errors import PlanError


class SqlLookupError(PlanError):
    """An error of the SQL that reads a lookup table. `index` and `fragment` are its place there."""

    index: int = 0
    fragment: str = ""


def lookup_error(message: str, place: Any, hint: str, code: str = "lookup-join") -> SqlLookupError:
    """Returns an error at the place of an expression or an operator in SQL."""
    error = SqlLookupError(message, code=code, hint=hint)
    origin = place.origin()
    text, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if text.isDefined() and start.isDefined() and stop.isDefined():
        error.index = int(start.get())
        error.fragment = str(text.get())[error.index : int(stop.get()) + 1]
    return error

"""Data errors: errors of Spark about a value of a row."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from penstock.core.errors import RecordError, Rejected

_DATA = re.compile(r"\[([A-Z_.0-9]+)\] (.*?)(?: SQLSTATE: (22\w{3})|$)", re.DOTALL)
_ADVICE = re.compile(
    r"\s*(Use `?try_|To return NULL|If necessary set|Correct the value).*", re.DOTALL
)
_FUNCTION = re.compile(
    r"\[USER_RAISED_EXCEPTION\] (function \"\w+\" failed: .*?)(?: SQLSTATE: P0001|$)", re.DOTALL
)
_MISSING = re.compile(r"\[USER_RAISED_EXCEPTION\] (column \"[^\n]*?\" is null; expected a value)")


def data_error(error: BaseException) -> RecordError | None:
    """Returns the record error of a Spark error about a value (SQLSTATE class 22), or None.

    Errors of user-defined functions and nulls in NOT NULL columns are also about a value.
    """
    return parse_data_error(str(error)) if isinstance(error, PySparkException) else None


def parse_data_error(text: str) -> RecordError | None:
    """Returns the record error of the text of a Spark error (see `data_error`), or None."""
    for match in _DATA.finditer(text):
        if (match[3] or "").startswith("22"):
            code = match[1].split(".")[0].lower().replace("_", "-")
            return Rejected(" ".join(_ADVICE.sub("", match[2]).split()), code=code)
    if missing := _MISSING.search(text):
        return Rejected(missing[1], code="missing-value")
    function = _FUNCTION.search(text)
    return Rejected(function[1], code="function-failed") if function else None

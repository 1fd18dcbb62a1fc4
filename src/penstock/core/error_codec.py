"""Errors as text: exceptions cross the JVM and process boundaries by their text alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar, cast

from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError, restore_error

_MARK = "penstock:"
_ENCODED = re.compile(re.escape(_MARK) + r"(\{.*\})", re.MULTILINE)


class EncodedError(Exception):
    """A PenstockError in encoded form: its text is a report, then the input of `decode`.

    Raised where Spark calls Python, because Spark keeps only the text of an exception. A user of
    PySpark reads the report.
    """


def encode(error: PenstockError) -> str:
    """Returns the error as one line of text, for `decode` also inside a traceback."""
    fields = {"class": type(error).__name__, **error.fields(), "message": str(error)}
    return _MARK + json.dumps({key: value for key, value in fields.items() if value is not None})


def decode(text: str) -> PenstockError | None:
    """Returns the last error encoded in `text`, or None."""
    for match in reversed(_ENCODED.findall(text)):
        try:
            fields = json.loads(match)
        except ValueError:
            continue
        return restore_error(fields.pop("class", "PenstockError"), fields, None)
    return None


F = TypeVar("F", bound=Callable[..., Any])


def encode_errors(function: F) -> F:
    """Decorates a function for Spark: raises EncodedError in place of PenstockError.

    A generator function raises its errors during the iteration.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _encoding():
            return function(*args, **kwargs)

    @wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Any:
        with _encoding():
            return (yield from function(*args, **kwargs))

    return cast(F, generate if isgeneratorfunction(function) else call)


@contextmanager
def _encoding() -> Iterator[None]:
    try:
        yield
    except PenstockError as error:
        raise EncodedError(f"{format_error(error)}\n{encode(error)}") from error

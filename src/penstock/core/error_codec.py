"""Errors as text: exceptions cross the JVM and process boundaries by their text alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar, cast

from penstock.core.error_report import format_error
from penstock.core.errors import OptionError, PenstockError, restore_error

_MARK = "penstock:"
_ENCODED = re.compile(re.escape(_MARK) + r"(\{.*\})", re.MULTILINE)


class EncodedError(Exception):
    """A PenstockError in encoded form: its text is a report, then the input of `decode`.

    Raised where Spark calls Python, because Spark keeps only the text of an exception. A user of
    PySpark reads the report.
    """


def encode(error: PenstockError) -> str:
    """Returns the error as one line of text, for `decode` also inside a traceback."""
    fields: dict[str, Any] = {
        "class": type(error).__name__, **error.fields(), "message": str(error), "node": error.node,
    }  # fmt: skip
    if isinstance(error, OptionError):
        fields |= {"option": error.option, "of_key": error.of_key}
    return _MARK + json.dumps({key: value for key, value in fields.items() if value is not None})


def decode(text: str) -> PenstockError | None:
    """Returns the last error encoded in `text`, or None."""
    for match in reversed(_ENCODED.findall(text)):
        try:
            fields = json.loads(match)
        except ValueError:
            continue
        error = restore_error(fields.pop("class", "PenstockError"), fields, None)
        error.node = fields.get("node")
        if isinstance(error, OptionError):
            error.option, error.of_key = (
                tuple(fields.get("option", ())),
                fields.get("of_key", False),
            )
        return error
    return None


F = TypeVar("F", bound=Callable[..., Any])


def encode_errors(function: F) -> F:
    """Decorates a function for Spark: raises EncodedError in place of PenstockError.

    A generator function raises its errors during the iteration. Errors of the methods of an object
    with the attribute `node` are of this node.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _encoding(args):
            return function(*args, **kwargs)

    @wraps(function)
    def generate(*args: Any, **kwargs: Any) -> Any:
        with _encoding(args):
            return (yield from function(*args, **kwargs))

    return cast(F, generate if isgeneratorfunction(function) else call)


@contextmanager
def raised_in(node: str | None) -> Iterator[None]:
    """Sets the node of errors that have none."""
    try:
        yield
    except PenstockError as error:
        error.node = error.node or node
        raise


@contextmanager
def _encoding(arguments: Sequence[Any]) -> Iterator[None]:
    try:
        with raised_in(getattr(arguments[0], "node", None) if arguments else None):
            yield
    except PenstockError as error:
        raise EncodedError(f"{format_error(error)}\n{encode(error)}") from error

"""Exits in the user's Python code, such as `sys.exit()`, as exceptions."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager

_PASSED = (Exception, KeyboardInterrupt, GeneratorExit, CancelledError)
"""Exceptions, and signals of Python itself."""


@contextmanager
def exits_as_exceptions() -> Iterator[None]:
    """Raises an Exception of the same name, text and traceback in place of SystemExit and others.

    KeyboardInterrupt, and the cancellation of coroutines and generators, pass unchanged.
    """
    try:
        yield
    except _PASSED:
        raise
    except BaseException as error:
        kind = type(type(error).__name__, (Exception,), {})
        raise kind(str(error)).with_traceback(error.__traceback__) from error

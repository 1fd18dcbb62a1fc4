"""Exceptions of the user's Python code: exits such as `sys.exit()`, and texts of any exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Interruption(BaseException):
    """The alarm in a call that exceeds its time limit."""


@contextmanager
def exits_as_exceptions(*passed: type[BaseException]) -> Iterator[None]:
    """Raises an Exception of the same name, text and traceback in place of SystemExit and others.

    Exceptions of the classes `passed` and Interruption pass unchanged. These are signals of Python
    itself: KeyboardInterrupt in a process of a terminal, CancelledError in a coroutine.
    """
    unchanged: tuple[type[BaseException], ...] = (Exception, Interruption, *passed)
    try:
        yield
    except unchanged:
        raise
    except BaseException as error:
        raise as_exception(error) from error


def as_exception(error: BaseException) -> Exception:
    """Returns an Exception of the same name, text and traceback."""
    kind = type(type(error).__name__, (Exception,), {})
    exception: Exception = kind(_message(error))
    return exception.with_traceback(error.__traceback__)


def exception_text(error: BaseException) -> str:
    """Returns the class and the message of an exception; the class alone without a message.

    The message of an exception of the user is computed by code of the user, which may fail too.
    """
    message = _message(error) or ("out of memory" if isinstance(error, MemoryError) else "")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return ""

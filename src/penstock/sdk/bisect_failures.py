"""Isolation of the failing records of a batch by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from penstock.core.errors import PenstockError, RecordError, Rejected
from penstock.core.exits import exception_text

T = TypeVar("T")


def bisect_failures(
    count: int,
    attempt: Callable[[int, int], T],
    convert_error: Callable[[Exception], RecordError] | None = None,
) -> Iterator[tuple[int, int, T | RecordError]]:
    """Calls `attempt(start, stop)` on parts of `range(count)`, in order.

    Yields the maximal parts that succeed with their results, and the single indexes that fail with
    their errors, converted by `convert_error`. Raises errors of Penstock other than record errors.
    Needs one call without failures, and about `log2(count)` calls for each failing record.
    """
    pending = [(0, count)] if count else []
    while pending:
        start, stop = pending.pop()
        try:
            yield start, stop, attempt(start, stop)
        except Exception as error:
            if isinstance(error, PenstockError) and not isinstance(error, RecordError):
                raise
            if stop - start == 1:
                yield start, stop, as_record_error(error, convert_error)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]


def as_record_error(
    error: Exception, convert_error: Callable[[Exception], RecordError] | None = None
) -> RecordError:
    """Converts an error to a record error, by `convert_error` or to Rejected."""
    if isinstance(error, RecordError):
        return error
    if convert_error is not None:
        return convert_error(error)
    return Rejected(exception_text(error))

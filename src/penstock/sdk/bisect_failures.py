"""Isolation of the failing records of a batch by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from penstock.core.errors import PenstockError, RecordError, Rejected
from penstock.core.exits import exception_text

T = TypeVar("T")


class FailedRow(Exception):
    """The failure of the row `index` of a part, which needs no search."""

    def __init__(self, index: int, error: RecordError) -> None:
        super().__init__(index, error)
        self.index, self.error = index, error


def bisect_failures(
    count: int,
    attempt: Callable[[int, int], T],
    convert_error: Callable[[Exception], RecordError] | None = None,
) -> Iterator[tuple[int, int, T | RecordError]]:
    """Calls `attempt(start, stop)` on parts of `range(count)`, in order.

    Yields the maximal parts that succeed with their results, and the single indexes that fail with
    their errors, converted by `convert_error`. Raises errors of Penstock other than record errors.
    Needs one call without failures, and about `log2(count)` calls for each failing record, or two
    if the call raises FailedRow.
    """
    pending: list[tuple[int, int, RecordError | None]] = [(0, count, None)] if count else []
    while pending:
        start, stop, failure = pending.pop()
        if failure is not None:
            yield start, stop, failure
            continue
        try:
            yield start, stop, attempt(start, stop)
        except FailedRow as failed:
            row = start + failed.index
            parts = [(row + 1, stop, None), (row, row + 1, failed.error), (start, row, None)]
            pending += [part for part in parts if part[0] < part[1]]
        except Exception as error:
            if isinstance(error, PenstockError) and not isinstance(error, RecordError):
                raise
            if stop - start == 1:
                yield start, stop, as_record_error(error, convert_error)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop, None), (start, middle, None)]


def as_record_error(
    error: Exception, convert_error: Callable[[Exception], RecordError] | None = None
) -> RecordError:
    """Converts an error to a record error, by `convert_error` or to Rejected."""
    if isinstance(error, RecordError):
        return error
    if convert_error is not None:
        return convert_error(error)
    return Rejected(exception_text(error))

"""Telling the bad records of a batch from the good ones by trying parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from penstock.core.errors import PenstockError, RecordError, Rejected

T = TypeVar("T")


def isolate(
    count: int,
    attempt: Callable[[int, int], T],
    blame: Callable[[Exception], RecordError] | None = None,
) -> Iterator[tuple[int, int, T | RecordError]]:
    """`attempt(start, stop)` over parts of `range(count)`, in order.

    Yields each largest part that went well with its result, and each single index that failed
    with its error. Outside failures (ConnectError and other errors that are not a record's) are
    raised. Costs one call when all is well, and about `log2(count)` calls for each bad record.
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
                yield start, stop, blamed(error, blame)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]


def blamed(
    error: Exception, blame: Callable[[Exception], RecordError] | None = None
) -> RecordError:
    """The error as a record's."""
    if isinstance(error, RecordError):
        return error
    if blame is not None:
        return blame(error)
    return Rejected(f"{type(error).__name__}: {error}")

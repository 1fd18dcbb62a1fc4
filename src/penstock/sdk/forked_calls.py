"""Calls of the user's code in forks, which find a call that ends its process or never ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from penstock.core.errors import RecordError, Rejected
from penstock.core.time_limit import ALARM_INTERVAL, BLOCKED_EXIT, CallState, observe_calls
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.forked import iterate_forked

T = TypeVar("T")
CODE = "function-crashed"


def call_forked(call: Callable[[], T]) -> T:
    """Returns the result of a call in a fork of this process. Raises its exception.

    Raises RecordError if the fork dies or exceeds the time limit of its call: with the code
    `function-crashed` or `function-failed`, within FailedRow if the row is known.
    """
    state = CallState.shared()

    def items() -> Iterator[T]:
        observe_calls(state)
        yield call()

    def is_expired() -> bool:
        return state.is_expired(2 * ALARM_INTERVAL)

    def crash(end: str) -> RecordError:
        is_killed = end == "signal SIGKILL" and state.is_expired()
        is_blocked = end == f"exit code {BLOCKED_EXIT}"
        return state.error() if is_killed or is_blocked else _crash(end)

    try:
        (result,) = iterate_forked(items, crash, is_expired)
    except RecordError as error:
        row = state.row()
        if row is None:
            raise
        raise FailedRow(row, error) from None
    return result


def _crash(end: str) -> RecordError:
    if end == "exit code 0":
        # The fork was to send a result before this end.
        return Rejected("the function closed the files of its process", code=CODE)
    return Rejected(f"the function ended its process with {end}", code=CODE)

"""The state of a key, as the user's functions see it: a value, and timers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class KeyState:
    """The state of a key during a call.

    `value` is any object that can be pickled, None at first. `key` has the columns of the key, and
    `time` is the time of the call: the event time of the row or of the timer, or the time of the
    clock. Without an exception the state is stored; otherwise that before the call stays.
    """

    def __init__(
        self, key: Mapping[str, Any], value: Any, timers: Mapping[str, int], time: int,
        has_on_timer: bool = True,
    ) -> None:  # fmt: skip
        self.key, self.value = dict(key), value
        self._timers, self._time, self._has_on_timer = dict(timers), time, has_on_timer

    @property
    def time(self) -> datetime:
        """The time of the call, in UTC."""
        return to_datetime(self._time)

    @property
    def timers(self) -> dict[str, datetime]:
        """The timers of the key that have not fired, by name."""
        return {name: to_datetime(time) for name, time in self._timers.items()}

    def set_timer(self, time: datetime, name: str = "") -> None:
        """Sets the timer of this name, which calls `on_timer(name, state)` at a later time.

        A timer of the same name is replaced. A time without a zone is in UTC.
        """
        if not self._has_on_timer:
            raise ValueError("a timer requires a class with the method on_timer")
        moment = to_microseconds(time)
        if moment <= self._time:
            raise ValueError(f"the timer {time} is not after the time of the call, {self.time}")
        self._timers[name] = moment

    def cancel_timer(self, name: str = "") -> None:
        """Removes the timer of this name, if there is one."""
        self._timers.pop(name, None)

    def clear(self) -> None:
        """Removes the value and the timers of the key."""
        self.value = None
        self._timers.clear()

    def stored_timers(self) -> dict[str, int]:
        """Returns the timers in microseconds since 1970."""
        return dict(self._timers)


def to_datetime(time: int) -> datetime:
    """Returns the time of microseconds since 1970."""
    return _EPOCH + time * _MICROSECOND


def to_microseconds(time: datetime) -> int:
    """Returns microseconds since 1970 of a time, which is in UTC without a zone."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND

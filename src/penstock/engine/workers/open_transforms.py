"""Open transforms of a worker process, kept between tasks."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from penstock.core.errors import PenstockError, PlanError, RecordError
from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.sdk import Transform

Call = Callable[[Callable[[], None]], None]
Key = tuple[str, str, str]
"""Pipeline, base directory and node."""


class OpenTransforms:
    """The transforms that this process has opened and that no task uses at present.

    A transform stays open for later tasks of the same run with the same version. A task of another
    run or version opens a transform of its own and closes the older one. A forked process starts
    without open transforms.
    """

    def __init__(self) -> None:
        self._idle: dict[Key, tuple[object, Transform[Any]]] = {}
        self._pid = os.getpid()
        atexit.register(self.close)

    @contextmanager
    def using(
        self, transform: Transform[Any], run: str, call: Call = lambda function: function()
    ) -> Iterator[Transform[Any]]:
        """Yields an open transform equal to `transform`, opened by `call(transform.open)`.

        The transform is closed after an exception. Raises PlanError if it cannot be opened.
        """
        key = (transform.context.pipeline, str(transform.context.base), transform.context.node)
        identity = (run, transform.version())
        opened = self._take(key, identity) or _open(transform, call)
        try:
            yield opened
        except GeneratorExit:
            self._keep(key, identity, opened)
            raise
        except BaseException:
            _close_quietly(opened)
            raise
        self._keep(key, identity, opened)

    def close(self) -> None:
        """Closes the idle transforms of this process. Errors are ignored."""
        if self._pid != os.getpid():
            return
        while self._idle:
            _, (_, transform) = self._idle.popitem()
            _close_quietly(transform)

    def _take(self, key: Key, identity: object) -> Transform[Any] | None:
        if self._pid != os.getpid():
            self._pid, self._idle = os.getpid(), {}
        kept, transform = self._idle.pop(key, (None, None))
        if transform is None or kept == identity:
            return transform
        _close_quietly(transform)
        return None

    def _keep(self, key: Key, identity: object, transform: Transform[Any]) -> None:
        """Keeps a transform for the next task. Another task may have returned one before."""
        _, other = self._idle.pop(key, (None, None))
        self._idle[key] = (identity, transform)
        if other is not None:
            _close_quietly(other)


OPEN_TRANSFORMS = OpenTransforms()


def _open(transform: Transform[Any], call: Call) -> Transform[Any]:
    try:
        with exits_as_exceptions():
            call(transform.open)
    except Exception as error:
        if isinstance(error, PenstockError) and not isinstance(error, RecordError):
            raise
        text = error.message if isinstance(error, RecordError) else exception_text(error)
        raise PlanError(
            f'transform "{transform.context.node}" cannot be opened: {text}', code="failed-open"
        ) from error
    return transform


def _close_quietly(transform: Transform[Any]) -> None:
    with suppress(Exception), exits_as_exceptions():
        transform.close()

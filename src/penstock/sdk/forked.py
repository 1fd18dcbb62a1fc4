"""Iteration in a forked process, which survives a crash of native code."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import select
import signal
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, BinaryIO, NoReturn, TypeVar

from penstock.core.errors import DecodeError, PenstockError, Transient
from penstock.core.exits import exception_text

T = TypeVar("T")
CRASHED = "decoder-crashed"
"""The code of the error of a process that ended while it decoded."""
_ITEM, _ERROR, _END = range(3)
_INTERVAL = 100
"""The milliseconds between two checks of the time limit of a fork."""
_STOPPED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def decoder_crash(end: str) -> PenstockError:
    """Returns the error of a decoder that ended its process, by an exit code or a signal."""
    return DecodeError(f"the decoder crashed with {end}", code=CRASHED)


def iterate_forked(
    items: Callable[[], Iterator[T]],
    crash: Callable[[str], PenstockError] = decoder_crash,
    expired: Callable[[], bool] | None = None,
) -> Iterator[T]:
    """Yields the items of `items()`, which runs in a fork of this process. Items are pickled.

    Kills the fork once `expired()` is true. Raises the exception of `items`. Raises the error
    `crash` if the fork ends before the last item, and Transient if a signal stops the fork.
    """
    reading, writing = os.pipe()
    pid = _fork()
    if pid == 0:
        os.close(reading)
        _send(items, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            wait = partial(_wait, pipe, pid, expired) if expired is not None else None
            complete = yield from _receive(pipe, wait)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
    if not complete:
        raise error_of_end(os.waitstatus_to_exitcode(status), crash)


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns of forks with several threads. The fork uses no lock of another thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _send(items: Callable[[], Iterator[Any]], writing: int) -> NoReturn:
    """Writes the items to a pipe and ends this process without running its exit handlers."""
    faulthandler.disable()
    gc.disable()  # Finalizers would run for objects of the parent.
    try:
        with os.fdopen(writing, "wb") as pipe:
            try:
                for item in items():
                    pickle.dump((_ITEM, item), pipe)
                    pipe.flush()
                pickle.dump((_END, None), pipe)
            except Exception as error:
                pipe.write(_pickle_error(error))
    finally:
        os._exit(0)


def _pickle_error(error: Exception) -> bytes:
    try:
        pickled = pickle.dumps((_ERROR, error))
        pickle.loads(pickled)
    except Exception:
        return pickle.dumps((_ERROR, RuntimeError(exception_text(error))))
    return pickled


def _wait(pipe: BinaryIO, pid: int, expired: Callable[[], bool]) -> None:
    """Waits for an item of a fork or for its end. Kills the fork once `expired()` is true."""
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLIN)
    while not poll.poll(_INTERVAL):
        if expired():
            os.kill(pid, signal.SIGKILL)
            return


def _receive(pipe: BinaryIO, wait: Callable[[], None] | None = None) -> Generator[Any, None, bool]:
    """Yields the items in a pipe. Returns whether the last item was received."""
    while True:
        if wait is not None:
            wait()
        try:
            kind, value = pickle.load(pipe)
        except (EOFError, pickle.UnpicklingError):
            return False
        if kind == _END:
            return True
        if kind == _ERROR:
            raise value
        yield value


def error_of_end(exit_code: int, crash: Callable[[str], PenstockError]) -> PenstockError:
    """Returns the error of a process that ended: `crash`, or Transient if a signal stopped it."""
    if -exit_code in _STOPPED:
        return Transient("could not finish: the process was stopped by a signal")
    end = f"exit code {exit_code}"
    if exit_code < 0:
        end = f"signal {signal.Signals(-exit_code).name}"
    return crash(end)

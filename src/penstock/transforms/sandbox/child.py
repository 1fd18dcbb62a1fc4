"""The program of a sandbox process: loads an engine, limits the process, and runs batches.

The environment is empty. Once the engine is loaded, the process cannot open files or sockets. Its
imports are few, as it starts in each worker.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import resource
import signal
import struct
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from penstock.transforms.sandbox.frames import read_frame, write_frame

OUT_OF_MEMORY = 77
"""The exit code of a process whose engine has reached its limit of memory."""
ROW = struct.Struct("<q")
NO_ROW = -1
_ALARM_FACTOR = 1.5
"""The kernel ends a call at this multiple of its time limit, if the engine does not end it."""
_PR_SET_PDEATHSIG = 1
_OVERHEAD = 128_000_000
"""Bytes for the batch and for the engine itself, beside the memory of the code."""


class CodeError(Exception):
    """An error of the user's code, with its line and column from 1, or 0 if they are unknown."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


@dataclass(frozen=True)
class Limits:
    """The limits of code: seconds of a row, and bytes of memory."""

    timeout: float
    memory: int


class Clock:
    """The running row, which the parent process can read, and the alarm that ends the process."""

    def __init__(self, descriptor: int) -> None:
        self._row = mmap.mmap(descriptor, ROW.size)
        self.seconds = 0.0
        os.close(descriptor)

    def start(self, row: int = NO_ROW) -> None:
        """Sets the running row, and gives it the whole time."""
        ROW.pack_into(self._row, 0, row)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def stop(self) -> None:
        """Ends the time limit."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        ROW.pack_into(self._row, 0, NO_ROW)


@dataclass(frozen=True)
class Batch:
    """The rows of a request. With `stepwise` the engine starts the clock for each row."""

    payload: bytes
    options: dict[str, Any]
    clock: Clock
    stepwise: bool


class Engine(Protocol):
    """An engine of a language. Its constructor runs no code of the user."""

    def load(self, code: bytes, options: dict[str, Any], limits: Limits) -> None:
        """Compiles the code. Raises CodeError."""

    def run(self, batch: Batch) -> bytes:
        """Returns the results of a batch as `results.Results` reads them."""


def main(engine: str, descriptor: int, parent: int) -> None:
    """Serves requests until the end of standard input."""
    os.environ.clear()
    _end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = _private_streams()
    try:
        _serve(engine, Clock(descriptor), requests, replies)
    except EOFError:
        pass
    except Exception:
        write_frame(replies, {"defect": traceback.format_exc()})
    os._exit(0)


def _serve(engine: str, clock: Clock, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answers requests. Raises EOFError at their end."""
    options, code = read_frame(requests)
    limits = Limits(options["timeout"], options["memory"])
    clock.seconds = limits.timeout * _ALARM_FACTOR
    try:
        loaded = _load(engine, code, options, limits, clock)
    except CodeError as error:
        write_frame(replies, {"error": [error.message, error.line, error.column]})
        return
    write_frame(replies, {})
    while True:
        header, payload = read_frame(requests)
        clock.start()
        result = loaded.run(Batch(payload, header, clock, header["stepwise"]))
        clock.stop()
        write_frame(replies, {}, result)


def _load(name: str, code: bytes, options: dict[str, Any], limits: Limits, clock: Clock) -> Engine:
    module, _, attribute = name.partition(":")
    engine: Engine = getattr(importlib.import_module(module), attribute)()
    _limit(limits.memory)
    clock.start()
    engine.load(code, options, limits)
    clock.stop()
    return engine


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Returns the streams of requests and replies, which the code of the user cannot reach."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    return requests, replies


def _end_with(parent: int) -> None:
    """Ends this process with its parent, also while code is running."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _limit(memory: int) -> None:
    """Limits the memory that the process allocates from now on, and forbids new files."""
    limits = [(resource.RLIMIT_NOFILE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)]
    with suppress(OSError, StopIteration):
        with open("/proc/self/status") as status:  # noqa: PTH123
            used = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
        limits.append((resource.RLIMIT_DATA, used * 1024 + _OVERHEAD + memory))
    for kind, value in limits:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))

"""Standard input, output and error of a process: their errors, and streams that are closed."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TextIO

from penstock.core.errors import OutputClosed, OutputError, UserError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

Name = Literal["stdin", "stdout", "stderr"]
_NAMES: dict[Name, str] = {
    "stdin": "standard input",
    "stdout": "standard output",
    "stderr": "standard error",
}


def open_standard_streams() -> None:
    """Replaces the standard streams of the process.

    Failures of writing are raised as OutputError. A stream that is closed at the start raises an
    error when it is used; messages on a closed standard error are discarded.
    """
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            _fill(number)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput(0, closefd=False)))
    sys.stdout = _output(1, "stdout")
    sys.stderr = _output(2, "stderr")


def discard_output() -> None:
    """Discards the rest of standard output, and of standard error if its reader has ended."""
    for name in ("stdout", "stderr"):
        stream: TextIO = getattr(sys, name)
        try:
            stream.flush()
        except OutputError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


@contextmanager
def output_errors(name: Name = "stdout") -> Iterator[None]:
    """Raises OutputError for errors of writing to a standard stream: OutputClosed for a pipe whose
    reader has ended.
    """
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed(f"the reader of {_NAMES[name]} has ended") from error
    except OSError as error:
        closed = error.errno == errno.EBADF
        reason = "it is closed" if closed else error.strerror or str(error)
        raise OutputError(
            f"cannot write to {_NAMES[name]}: {reason}",
            hint="Redirect the output, as in > /dev/null." if closed else None,
        ) from error


class _Output(io.FileIO):
    """A standard stream whose errors are OutputErrors.

    A write returns when all bytes are written. A system call writes a part of them if the stream
    does not block, or if the reader of a pipe ends meanwhile, and an unbuffered TextIOWrapper
    (`PYTHONUNBUFFERED`) would drop the remainder.
    """

    def __init__(self, number: int, name: Name) -> None:
        super().__init__(number, "w", closefd=False)
        self._stream = name

    def write(self, data: ReadableBuffer, /) -> int:
        remaining = memoryview(data).cast("B")
        size = len(remaining)
        with output_errors(self._stream):
            while remaining:
                written = super().write(remaining)
                if written is None:
                    select.select([], [self], [])
                remaining = remaining[written or 0 :]
        return size


class _ClosedInput(io.FileIO):
    """A standard input that is closed."""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        raise UserError(
            "standard input is closed", code="input-closed",
            hint="Redirect the input, as in < FILE.",
        )  # fmt: skip

    def readall(self) -> bytes:
        self.readinto(bytearray())
        return b""


def _output(number: int, name: Name) -> io.TextIOWrapper:
    """Returns a stream with the settings of the present one, whose errors are OutputErrors."""
    raw, present = _Output(number, name), getattr(sys, name)
    if not isinstance(present, io.TextIOWrapper):
        buffer = io.BufferedWriter(raw)
        return io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=number == 2)
    unbuffered = present.write_through
    return io.TextIOWrapper(
        raw if unbuffered else io.BufferedWriter(raw),
        encoding=present.encoding,
        errors=present.errors,
        line_buffering=present.line_buffering,
        write_through=unbuffered,
    )


def _fill(number: int) -> None:
    """Opens a closed descriptor, which the next file of the process would have otherwise.

    Reading from standard input and writing to standard output fail as on a closed descriptor.
    """
    mode = os.O_RDONLY if number == 1 else os.O_WRONLY
    descriptor = os.open(os.devnull, mode)
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.set_inheritable(number, True)

"""Sandbox processes: started, called and ended by a transform."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any, BinaryIO, cast

from penstock.core.errors import Bug, RecordError, Rejected
from penstock.core.time_limit import NoResult
from penstock.core.units import size_text
from penstock.sdk.forked import error_of_end
from penstock.transforms.sandbox.child import NO_ROW, OUT_OF_MEMORY, ROW, CodeError, Limits
from penstock.transforms.sandbox.frames import read_frame, write_frame

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from penstock.transforms.sandbox.child import main; "
    "main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))"
)
CODE = "function-crashed"
_GRACE = 5.0
"""The seconds between the end of the output of a process and the end of the process."""


class Crash(Exception):
    """The end of a sandbox process in a call. `row` is None if the running row is not known."""

    def __init__(self, error: RecordError, row: int | None) -> None:
        super().__init__(error)
        self.error, self.row = error, row


class SandboxProcess:
    """A process with an empty environment, which runs the code of one transform.

    The process belongs to the process that started it. It ends with its owner, after a crash, and
    at a time limit. Another call needs another process then.
    """

    def __init__(self, engine: str, code: bytes, options: dict[str, Any], limits: Limits) -> None:
        """Starts the process and compiles the code. Raises CodeError, or RecordError at an end."""
        self.owner = os.getpid()
        self._limits = limits
        with tempfile.TemporaryFile() as file:
            file.truncate(ROW.size)
            self._row = mmap.mmap(file.fileno(), ROW.size)
            ROW.pack_into(self._row, 0, NO_ROW)
            arguments = [json.dumps(sys.path), engine, str(file.fileno()), str(self.owner)]
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                pass_fds=[file.fileno()], env={}, cwd="/",
            )  # fmt: skip
        try:
            settings = {**options, "timeout": limits.timeout, "memory": limits.memory}
            header, _ = self._exchange(settings, code)
        except Crash as crash:
            raise crash.error from None
        if "error" in header:
            self.close()
            raise CodeError(*header["error"])

    def call(self, header: dict[str, Any], payload: bytes) -> bytes:
        """Returns the results of a batch. Raises Crash."""
        return self._exchange(header, payload)[1]

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):
                stream.close()
        self._row.close()

    def _exchange(self, header: dict[str, Any], payload: bytes) -> tuple[Any, bytes]:
        process = self._process
        requests, replies = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        try:
            write_frame(requests, header, payload)
            reply, content = read_frame(replies)
            if "defect" in reply:
                raise Bug("an engine failed in its sandbox process", detail=reply["defect"])
            return reply, content
        except (OSError, EOFError):
            pass
        except BaseException:
            self.close()
            raise
        exit_code = _wait(process)
        (row,) = ROW.unpack_from(self._row)
        self.close()
        error = error_of_end(exit_code, self._crash)
        if not isinstance(error, RecordError):
            raise error
        raise Crash(error, None if row == NO_ROW else row)

    def _crash(self, end: str) -> RecordError:
        if end == "signal SIGALRM":
            return NoResult.within(self._limits.timeout)
        memory = size_text(self._limits.memory)
        if end == f"exit code {OUT_OF_MEMORY}":
            return Rejected(f"the code needs more memory than max_memory ({memory})", code=CODE)
        return Rejected(
            f"the code ended its process with {end}", code=CODE,
            hint=f"The code may need more memory than max_memory ({memory})",
        )  # fmt: skip


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit code of a process whose output has ended. Kills a process that stays."""
    try:
        return process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()

"""Warm Python process from which Spark's Python workers are forked."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.engine.workers import launcher, zygote
from penstock.engine.workers.preload import SINGLE_THREADED
from penstock.engine.workers.scratch import Scratch

STOP_TIMEOUT = 5.0
_RUN = """\
import sys
del sys.path[0]
from runpy import run_path
run_path(sys.argv[1], run_name="__main__")
"""
"""The start of the process, without its own directory in the import path."""


class WarmPython:
    """The warm process. The warm process and its children end with this process.

    `launcher` is the program that Spark starts as Python on the driver's machine. Executors of a
    cluster start Python themselves. With `pandas` its children share pandas.
    """

    def __init__(self, log: Path | None = None, *, pandas: bool = True) -> None:
        self._scratch = Scratch()
        address = self._scratch.path / "warm"
        self.launcher = self._scratch.path / "python"
        command = [sys.executable, "-IS", launcher.__file__, str(address)]
        self.launcher.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        self.launcher.chmod(0o700)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(address))
            listener.listen(128)
            self._process = self._spawn(listener, log, pandas)

    @classmethod
    def start(cls, log: Path | None = None, *, pandas: bool = True) -> WarmPython:
        """Starts the process without waiting. Early requests wait in its socket."""
        return cls(log, pandas=pandas)

    def directory_of(self, name: str) -> str:
        """Returns a directory in which a program of this name is the launcher."""
        directory = self._scratch.path / "bin"
        directory.mkdir(exist_ok=True)
        (directory / name).symlink_to(self.launcher)
        return str(directory)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Stops the process and its children. May be called twice."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _spawn(
        self, listener: socket.socket, log: Path | None, pandas: bool
    ) -> subprocess.Popen[bytes]:
        environment = {"PYTHONHASHSEED": "0", **os.environ, **SINGLE_THREADED}
        with (log or Path(os.devnull)).open("ab") as output:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _RUN,
                    zygote.__file__,
                    str(listener.fileno()),
                    *(["pandas"] if pandas else []),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

"""The program `penstock` of a shell whose commands run in the process of the tests."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from command_line import CommandLine

_INTERVAL = 0.05
_PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    request = [sys.argv[1:], os.getcwd(), dict(os.environ)]
    connection.sendall(json.dumps(request).encode())
    connection.shutdown(socket.SHUT_WR)
    code, out, err = json.load(connection.makefile("rb"))
sys.stdout.write(out)
sys.stdout.flush()
sys.stderr.write(err)
sys.exit(code)
"""


class PenstockProgram:
    """A program `penstock` in `directory`, which requests its commands from `serve`."""

    def __init__(self, cli: CommandLine) -> None:
        self._cli = cli
        self._temporary = TemporaryDirectory(prefix="penstock-")
        self.directory = Path(self._temporary.name)
        address = str(self.directory / "socket")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen()
        self._listener.settimeout(_INTERVAL)
        program = self.directory / "penstock"
        program.write_text(_PROGRAM.format(python=sys.executable, address=address))
        program.chmod(0o700)

    def serve(self, done: Callable[[], bool]) -> None:
        """Runs the requested commands until `done()`."""
        while not done():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(None)
                self._respond(connection)

    def _respond(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            words, directory, environment = json.load(file)
        environment["PATH"] = os.environ["PATH"]
        ran = self._cli(Path(directory), *words, environment=environment)
        connection.sendall(json.dumps([ran.returncode, ran.stdout, ran.stderr]).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        self._temporary.cleanup()

"""Zygote: a process that imports all modules of workers once and forks workers on request.

`WarmPython` runs this file with the number of a listening socket as argument, followed by `pandas`
if workers are to share pandas, and a pipe as standard input. When the pipe closes, the process ends
its children and itself. The process is single-threaded, because a fork copies one thread only.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass
from typing import NoReturn

from penstock.engine.workers.preload import preload

STARTED = b"+"
REQUEST_TIMEOUT = 10.0
GRACE = 1.0


@dataclass(frozen=True)
class Request:
    arguments: list[str]
    directory: str
    environment: dict[bytes, bytes]
    descriptors: list[int]


@dataclass
class Child:
    pid: int
    connection: socket.socket
    kill_at: float | None = None

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def end(self) -> None:
        """Terminates the process group of the child, and kills the group after a grace period."""
        if self.kill_at is None:
            self.kill_at = time.monotonic() + GRACE
            self.signal(signal.SIGTERM)


class Zygote:
    def __init__(self, listener: socket.socket, path: list[str]) -> None:
        self._listener = listener
        self._path = path
        self._children: dict[int, Child] = {}
        self._owner = os.getppid()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, lambda number, frame: self._close())
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self) -> None:
        """Forks on request until the owner has ended."""
        while True:
            clients = {child.connection.fileno(): child for child in self._children.values()}
            poll = select.poll()
            for fd in (0, self._woken, self._listener.fileno(), *clients):
                poll.register(fd, select.POLLIN)
            ready = {fd for fd, _ in poll.poll(1000)}
            if 0 in ready or os.getppid() != self._owner:
                self._close()
            if self._woken in ready:
                os.read(self._woken, 4096)
            for fd in ready & clients.keys():
                clients[fd].end()
            self._reap()
            self._kill_late()
            if self._listener.fileno() in ready:
                self._accept()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(REQUEST_TIMEOUT)
        try:
            request = _receive(connection)
        except (OSError, ValueError, EOFError, TypeError):
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            try:
                self._reset_child()
                connection.close()
                _become(request, self._path)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        for fd in request.descriptors:
            os.close(fd)
        self._children[pid] = Child(pid, connection)
        with contextlib.suppress(OSError):
            connection.sendall(STARTED)

    def _reset_child(self) -> None:
        """Releases the resources of the parent in a child."""
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for fd in (self._woken, self._wake):
            os.close(fd)
        self._listener.close()
        for child in self._children.values():
            child.connection.close()
        self._children.clear()

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    child.connection.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
                child.connection.close()

    def _kill_late(self) -> None:
        now = time.monotonic()
        for child in self._children.values():
            if child.kill_at is not None and now > child.kill_at:
                child.signal(signal.SIGKILL)

    def _close(self) -> NoReturn:
        self._listener.close()
        for child in self._children.values():
            child.end()
        groups = list(self._children.values())
        deadline = time.monotonic() + GRACE
        while self._children and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.01)
        for child in groups:
            child.signal(signal.SIGKILL)
        os._exit(0)


def _receive(connection: socket.socket) -> Request:
    head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    try:
        if len(head) != 4 or len(descriptors) != 3:
            raise ValueError("not a request")
        with connection.makefile("rb") as file:
            content = file.read(int.from_bytes(head))
        arguments, directory, environment = marshal.loads(content)
    except BaseException:
        for fd in descriptors:
            os.close(fd)
        raise
    return Request(arguments, directory, environment, descriptors)


def _become(request: Request, path: list[str]) -> NoReturn:
    """Executes the request like a new `python -m module ...`, and ends the process."""
    for target, fd in enumerate(request.descriptors):
        os.dup2(fd, target)
        os.close(fd)
    os.chdir(request.directory)
    os.environb.clear()
    os.environb.update(request.environment)
    time.tzset()
    if os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "reconfigure", lambda **_: None)(write_through=True)
    _, module, *arguments = request.arguments
    sys.argv = [module, *arguments]
    sys.path[:] = [request.directory, *_python_path(), *path]
    importlib.invalidate_caches()
    sys.modules.pop(module, None)
    os._exit(_run(module))


def _run(module: str) -> int:
    code: object = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        code = exit_.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return code & 0xFF if isinstance(code, int) else int(code is not None)


def _python_path() -> list[str]:
    """Returns PYTHONPATH without Spark's archives, whose modules are imported already."""
    spark = os.environ.get("SPARK_HOME")
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [entry for entry in entries if entry and not (spark and entry.startswith(spark))]


def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[2]))
    python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    preload(pandas="pandas" in sys.argv[3:])
    Zygote(listener, [entry for entry in sys.path if entry not in python_path]).serve()


if __name__ == "__main__":
    main()

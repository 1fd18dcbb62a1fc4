"""A server that tests start, kill, pause and start again: the base of all of them."""

from __future__ import annotations

import os
import random
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from servers.directory import Directory
from servers.process import Process


class Server(ABC):
    """A server on a loopback port and in a directory of its own, which are its until `close`.

    A server is a subclass that says its `command` and how a client finds it `ready`. As a context
    manager it is started and, at the end, closed. Several of a kind may run at once.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """What it is, for people."""
    seconds_to_start: ClassVar[float] = 60

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self.directory = Directory(self.name)
        self._process: Process | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What starts it; called before each start, so it may write the server's configuration."""

    @abstractmethod
    def ready(self) -> None:
        """Makes a real call of a client; raises while that does not succeed."""

    def environment(self) -> Mapping[str, str]:
        """Variables that the server needs beside those of the tests."""
        return {}

    @property
    def log(self) -> Path:
        """What the server printed, over all its starts."""
        return self.directory.path / "log"

    @property
    def process(self) -> Process:
        """The process of the last start."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    def start(self) -> None:
        """Starts it with the data that it has, at the port that it had, and waits until ready."""
        if self._process is not None and self._process.running:
            raise RuntimeError(f"{self.name} is running")
        self._process = Process(self.command(), self.log, self.environment())
        self.directory.remember(self._process.pid)
        try:
            self.wait_until_ready()
        except BaseException:
            self._process.kill()
            raise

    def wait_until_ready(self) -> None:
        """Returns as soon as the server answers a client."""
        until = time.monotonic() + self.seconds_to_start
        while True:
            try:
                return self.ready()
            except Exception as error:
                if not self.process.running or time.monotonic() > until:
                    why = "did not answer" if self.process.running else "ended"
                    raise RuntimeError(f"{self.name} {why}: {error}\n{self.last_words()}") from None
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends it as its administrator would; its data stay."""
        self.process.stop()

    def kill(self) -> None:
        """Ends it as a power cut would; its data stay."""
        self.process.kill()

    def pause(self) -> None:
        """From now on it takes connections and does not answer."""
        self.process.pause()

    def resume(self) -> None:
        """It goes on where it was paused."""
        self.process.resume()

    def restore(self) -> None:
        """Starts or resumes it, if it was stopped, killed or paused, and waits until ready."""
        if self.process.running:
            self.resume()
            self.wait_until_ready()
        else:
            self.start()

    def close(self) -> None:
        """Ends it and removes its data."""
        if self._process is not None:
            self._process.kill()
        self.directory.remove()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def last_words(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


_WORKERS = 8
_RANDOM = random.SystemRandom()
_given: set[int] = set()


def free_port() -> int:
    """Returns a port without a listener, which no outgoing connection gets while it is free.

    No port is given twice. The processes of a run of the tests have ports of their own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    while True:
        port = _RANDOM.randrange(12_000 + worker, 32_000, _WORKERS)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port

"""Pool of worker processes. A worker that does not answer in time is killed and replaced."""

from __future__ import annotations

import json
import os
import queue
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, Transient

REQUESTS_PER_WORKER = 2000
"""The requests after which a worker is replaced: it remembers modules of pipelines."""
START_SECONDS = 60.0
"""The time in which the process of a worker starts; a busy machine needs many seconds."""
WAIT_SECONDS = 20.0
"""The time that a request waits for a free worker."""
_BLOCK = 1 << 16
MAX_WAITING = 16
"""The requests that may wait for a free worker; further ones fail at once."""


class WorkerError(PenstockError):
    """The errors of an operation, as the worker has reported them."""

    def __init__(self, errors: list[dict[str, Any]], status: int) -> None:
        first = errors[0]
        super().__init__(first["message"], code=first["code"], hint=first.get("hint"))
        self.errors, self.status = errors, status


class WorkerPool:
    """Worker processes with an environment of their own. Safe for several threads."""

    def __init__(self, size: int, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._free: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._waiting, self._closed = 0, False
        for _ in range(size):
            self._free.put(None)

    def call(
        self, operation: str, file: Path, *, text: str | None = None, timeout: float = 30.0,
        variables: Mapping[str, str] | None = None, **arguments: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Performs an operation of `operations.OPERATIONS` and returns its result.

        `text` takes the place of the file's, and `variables` are those of the environment during
        the operation. Raises WorkerError with the errors of the operation,
        and Transient if it takes longer than `timeout` seconds or no worker is free.
        """
        request = {
            "operation": operation, "file": str(file), "text": text, "arguments": arguments,
            "variables": dict(variables or {}),
        }  # fmt: skip
        with self._worker() as worker:
            answer = worker.ask(request, timeout)
        if "errors" in answer:
            raise WorkerError(answer["errors"], answer["status"])
        result: dict[str, Any] = answer["result"]
        return result

    def end_idle(self, seconds: float) -> None:
        """Ends workers without a request for a time, which use 90 MB each."""
        for _ in range(self._free.qsize()):
            try:
                worker = self._free.get_nowait()
            except queue.Empty:
                return
            if worker is not None and time.monotonic() - worker.last_request > seconds:
                worker.end()
                with self._lock:
                    self._workers.discard(worker)
                worker = None
            self._free.put(worker)

    def close(self) -> None:
        """Ends all workers, and with them the operations under way."""
        with self._lock:
            self._closed = True
            for worker in self._workers:
                worker.kill()

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        worker = self._take()
        try:
            worker = worker or self._start()
            yield worker
        finally:
            spent = self._closed or (
                worker is not None and (worker.ended or worker.requests >= REQUESTS_PER_WORKER)
            )
            if worker is not None and spent:
                worker.end()
                with self._lock:
                    self._workers.discard(worker)
                worker = None
            self._free.put(worker)

    def _take(self) -> _Worker | None:
        """Waits for a free worker; None is a place for a new one."""
        busy = Transient(
            "all workers of the server are busy", code="workers-busy", hint="Try again later."
        )
        with self._lock:
            if self._waiting >= MAX_WAITING:
                raise busy
            self._waiting += 1
        try:
            return self._free.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            raise busy from None
        finally:
            with self._lock:
                self._waiting -= 1

    def _start(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise Transient("the server is about to end", code="server-ending")
            try:
                worker = _Worker(self._environment)
            except OSError as error:
                raise Transient(
                    f"could not start a worker: {error.strerror}", code="worker-ended",
                    hint="Free memory of the machine of the server.",
                ) from error  # fmt: skip
            self._workers.add(worker)
            return worker


class _Worker:
    """One worker process, in a process group of its own with all that it starts."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.requests, self.ended = 0, False
        self.last_request = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "penstock.server.workers.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(environment), start_new_session=True, bufsize=0,
        )  # fmt: skip
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Returns the answer. The time of the first request begins when the process is ready."""
        self.requests += 1
        self.last_request = time.monotonic()
        try:
            if self.requests == 1:
                self._exchange(b"", START_SECONDS)
            return self._exchange(json.dumps(request).encode() + b"\n", timeout)
        except BaseException:
            self.ended = True
            raise

    def end(self) -> None:
        """Kills the process and its children, and closes its pipes."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def kill(self) -> None:
        """Kills the process and its children."""
        self.ended = True
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)

    def _exchange(self, line: bytes, timeout: float) -> dict[str, Any]:
        """Sends a line and returns the answer. A worker may read and write arbitrarily late."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        questions, answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        answer, unsent, deadline = bytearray(), memoryview(line), time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(answers, selectors.EVENT_READ)
            selector.register(questions, selectors.EVENT_WRITE)
            while not answer.endswith(b"\n"):
                remaining = deadline - time.monotonic()
                ready = selector.select(remaining) if remaining > 0 else []
                if not ready:
                    raise Transient(
                        f"the operation took longer than {timeout:.0f} s", code="timeout",
                        hint="Simplify the pipeline, or try again when the machine is less busy.",
                    )  # fmt: skip
                for key, _ in ready:
                    if key.fd == answers:
                        answer += self._read(answers)
                    elif unsent:
                        unsent = unsent[self._write(questions, unsent) :]
                    else:
                        selector.unregister(questions)
        try:
            found: dict[str, Any] = json.loads(answer)
            return found
        except (ValueError, RecursionError):
            raise _ended() from None

    @staticmethod
    def _read(descriptor: int) -> bytes:
        chunk = os.read(descriptor, _BLOCK)
        if not chunk:
            raise _ended()
        return chunk

    @staticmethod
    def _write(descriptor: int, unsent: memoryview) -> int:
        try:
            return os.write(descriptor, unsent)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _ended() from error


def _ended() -> Transient:
    return Transient("the worker of the server has ended", code="worker-ended")

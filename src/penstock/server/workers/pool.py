"""Pool of worker processes. A worker that does not answer in time is killed and replaced."""

from __future__ import annotations

import json
import os
import queue
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from penstock.core.errors import PenstockError, Transient

REQUESTS_PER_WORKER = 500
"""The requests after which a worker is replaced: it remembers modules of pipelines."""
WAIT_SECONDS = 20.0
"""The time that a request waits for a free worker."""


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
        for _ in range(size):
            self._free.put(None)

    def call(
        self, operation: str, file: Path, *, text: str | None = None, timeout: float = 30.0,
        **arguments: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Performs an operation of `operations.OPERATIONS` and returns its result.

        `text` takes the place of the file's. Raises WorkerError with the errors of the operation,
        and Transient if it takes longer than `timeout` seconds or no worker is free.
        """
        request = {
            "operation": operation, "file": str(file), "text": text, "arguments": arguments,
        }  # fmt: skip
        with self._worker() as worker:
            answer = worker.ask(request, timeout)
        if "errors" in answer:
            raise WorkerError(answer["errors"], answer["status"])
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        """Ends the free workers."""
        with suppress(queue.Empty):
            while True:
                worker = self._free.get_nowait()
                if worker is not None:
                    worker.end()

    @contextmanager
    def _worker(self) -> Iterator[_Worker]:
        try:
            worker = self._free.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            raise Transient(
                "all workers of the server are busy", code="workers-busy", hint="Try again later."
            ) from None
        try:
            worker = worker or _Worker(self._environment)
            yield worker
        finally:
            if worker is not None and (worker.ended or worker.requests >= REQUESTS_PER_WORKER):
                worker.end()
                worker = None
            self._free.put(worker)


class _Worker:
    """One worker process, in a process group of its own with all that it starts."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.requests, self.ended = 0, False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "penstock.server.workers.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(environment), start_new_session=True,
        )  # fmt: skip

    def ask(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        self.requests += 1
        try:
            return self._exchange(json.dumps(request).encode() + b"\n", timeout)
        except BaseException:
            self.ended = True
            raise

    def end(self) -> None:
        """Kills the process and its children."""
        self.ended = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _exchange(self, line: bytes, timeout: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError as error:
            raise _ended() from error
        answer, deadline = bytearray(), time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                if not selector.select(deadline - time.monotonic()):
                    raise Transient(
                        f"the operation took longer than {timeout:.0f} s", code="timeout",
                        hint="Simplify the pipeline, or try again when the machine is less busy.",
                    )  # fmt: skip
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise _ended()
                answer += chunk
        found: dict[str, Any] = json.loads(answer)
        return found


def _ended() -> Transient:
    return Transient("the worker of the server has ended", code="worker-ended")

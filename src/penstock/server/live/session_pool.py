"""Pool of warm workers: at most some operations at a time, the others wait in order."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, Transient
from penstock.server.drafts import Draft
from penstock.server.live.session_process import SessionProcess
from penstock.server.workers.pool import WorkerError

AT_WORK = 2
AT_WORK_PER_USER = 4
"""The operations of a user that are at work or wait."""
MAX_WAITING = 100
IDLE_SECONDS = 300.0
"""The time after which a worker without an operation ends, and frees its memory."""
REQUESTS_PER_WORKER = 50
"""The operations after which a worker is replaced: their queries leave data and threads in Java."""


@dataclass(eq=False)
class Job:
    """An operation that waits or is at work. `events` ends with None."""

    user: str
    request: Mapping[str, Any]
    timeout: float
    events: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = field(
        default_factory=queue.SimpleQueue
    )
    _cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def group(self) -> str:
        return str(Path(self.request["file"]).parent)

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ends the operation, or its wait."""
        self._cancelled.set()

    def wait(self) -> dict[str, Any]:
        """Returns the facts of the event `done`. Raises WorkerError with those of `failed`."""
        while (found := self.events.get()) is not None:
            event, facts = found
            if event == "done":
                return facts
            if event == "failed":
                raise WorkerError(facts["errors"], facts["status"])
        raise Transient("the server is about to end", code="server-ending")


class SessionPool:
    """Worker processes with Spark sessions, started on demand. Safe for several threads."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, at_work: int = AT_WORK,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:  # fmt: skip
        self._environment, self._command = dict(environment), command
        self._at_work, self._idle_seconds = at_work, idle_seconds
        self._lock = threading.Lock()
        self._waiting: list[Job] = []
        self._working: dict[Job, SessionProcess | None] = {}
        self._idle: dict[SessionProcess, threading.Timer] = {}
        self._closed = False

    def submit(
        self, user: str, operation: str, draft: Draft, timeout: float, **arguments: Any
    ) -> Job:
        """Adds an operation of `session_operations` on a draft.

        Raises Transient if the user or the server has too many operations.
        """
        request = {
            "operation": operation, "file": str(draft.file), "text": draft.text,
            "variables": dict(draft.variables), "arguments": arguments,
        }  # fmt: skip
        job = Job(user, request, timeout)
        with self._lock:
            self._require_place(user)
            self._waiting.append(job)
            self._dispatch()
        return job

    def cancel(self, job: Job) -> None:
        """Ends an operation, or its wait."""
        job.cancel()
        with self._lock:
            self._dispatch()

    def position(self, job: Job) -> int:
        """Returns the number of jobs that start before a job and with it; 0 for one at work."""
        with self._lock:
            return self._waiting.index(job) + 1 if job in self._waiting else 0

    def close(self) -> None:
        """Ends all workers, and with them the operations under way."""
        with self._lock:
            self._closed = True
            processes = [each for each in self._working.values() if each is not None]
            for job in (*self._waiting, *self._working):
                job.cancel()
            for timer in self._idle.values():
                timer.cancel()
            processes += self._idle
            self._idle.clear()
            self._waiting.clear()
        for process in processes:
            process.kill()

    def _require_place(self, user: str) -> None:
        counts = Counter(job.user for job in (*self._waiting, *self._working))
        if self._closed or len(self._waiting) >= MAX_WAITING:
            raise Transient(
                "all workers of the server are busy", code="workers-busy", hint="Try again later."
            )
        if counts[user] >= AT_WORK_PER_USER:
            raise Transient(
                f'the user "{user}" has {AT_WORK_PER_USER} previews and tests under way',
                code="workers-busy", hint="Wait for their end, or stop one.",
            )  # fmt: skip

    def _dispatch(self) -> None:
        """Starts jobs while there is a place. The caller holds the lock."""
        for job in [each for each in self._waiting if each.cancelled]:
            self._waiting.remove(job)
            job.events.put(None)
        while self._waiting and len(self._working) < self._at_work and not self._closed:
            job = self._waiting.pop(0)
            self._working[job] = self._take_idle(job.group)
            threading.Thread(target=self._work, args=(job,), daemon=True).start()

    def _take_idle(self, group: str) -> SessionProcess | None:
        """Returns an idle worker of a group; None is a place for a new one."""
        for process in [*self._idle]:
            if process.group == group and process.alive:
                self._idle.pop(process).cancel()
                return process
        if len(self._idle) + len(self._working) >= self._at_work:
            process = next(iter(self._idle))
            self._idle.pop(process).cancel()
            process.kill()
        return None

    def _work(self, job: Job) -> None:
        process: SessionProcess | None = None
        try:
            process = self._process_of(job)
            process.perform(
                job.request, lambda *event: job.events.put(event), lambda: job.cancelled,
                job.timeout,
            )  # fmt: skip
        except PenstockError as error:
            job.events.put(("failed", _failure(error)))
        except Exception as error:
            failed = Transient(f"the worker of the server has failed: {error}", code="worker-ended")
            job.events.put(("failed", _failure(failed)))
            if process is not None:
                process.kill()
        finally:
            job.events.put(None)
            with self._lock:
                del self._working[job]
                if process is not None:
                    self._put_back(process)
                self._dispatch()

    def _process_of(self, job: Job) -> SessionProcess:
        with self._lock:
            process = self._working[job]
            if self._closed:
                raise Transient("the server is about to end", code="server-ending")
            if process is None:
                try:
                    process = SessionProcess(self._command, self._environment, job.group)
                except OSError as error:
                    raise Transient(
                        f"could not start a worker: {error.strerror}", code="worker-ended",
                        hint="Free memory of the machine of the server.",
                    ) from error  # fmt: skip
                self._working[job] = process
            return process

    def _put_back(self, process: SessionProcess) -> None:
        """Keeps a worker for the next job, for a while."""
        if self._closed or not process.alive or process.requests >= REQUESTS_PER_WORKER:
            process.kill()
            return
        timer = threading.Timer(self._idle_seconds, self._end_idle, (process,))
        timer.daemon = True
        self._idle[process] = timer
        timer.start()

    def _end_idle(self, process: SessionProcess) -> None:
        with self._lock:
            if self._idle.pop(process, None) is None:
                return
        with suppress(OSError):
            process.kill()


def _failure(error: PenstockError) -> dict[str, Any]:
    return {"errors": to_dicts(error), "status": error.policy.http_status}

"""Supervision of one pipeline: its process, its failures and its health."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path

from penstock.core.files.private_files import FILE_MODE
from penstock.core.log import Log
from penstock.observe.snapshot import Snapshot
from penstock.runtime.health import Health, HealthState, Reason, health_of
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.lock import ALREADY_RUNNING
from penstock.runtime.state.status import FinishedRun, Status, StatusReader
from penstock.server.catalog import CatalogEntry
from penstock.server.store.pipelines import (
    EJECTED,
    EJECTING_STARTS,
    Pipelines,
    Start,
    StoredPipeline,
)
from penstock.server.supervision.restart_policy import Failures
from penstock.server.supervision.run_log import last_error
from penstock.server.supervision.run_process import Launcher, RunProcess, new_run_id
from penstock.server.supervision.shared_runs import SharedRun
from penstock.server.supervision.starts_elsewhere import is_found, reason_of

START_SECONDS = 120.0
"""The time within which a started run must lock its state directory."""
CANCEL_SECONDS = 30.0
"""The time within which a host must end a start that is cancelled."""
_NOT_LOCKED = Reason(
    "run-not-started",
    f"the run has not locked its state within {START_SECONDS:g} s of its start",
    "Look in the pipeline for Python code, a secret or a directory that blocks.",
)
SERVER = "server"
"""The author of restarts."""


class Supervised:
    """One pipeline under supervision. `health` and `status` are those of the last comparison.

    `adopted` is the last start by an earlier server, if its end is not known.
    """

    def __init__(
        self, pipelines: Pipelines, launcher: Launcher, log: Log, adopted: Start | None = None
    ) -> None:
        self._pipelines, self._launcher, self._log = pipelines, launcher, log
        self._process: RunProcess | SharedRun | None = None
        self._elsewhere = adopted if adopted is not None and adopted.is_elsewhere else None
        if adopted is not None and self._elsewhere is None:
            self._process = launcher.adopt(adopted)
        self._started_at = time.monotonic()
        self._has_lock = self._requested_stop = False
        self._cancelled_at: float | None = None
        self._failures = Failures()
        self._wishes: int | None = None
        self._wish: tuple[str, int] | None = None
        self._error: Reason | None = None
        self.health = Health("unknown")
        self.status: Status | None = None
        self._reader: StatusReader | None = None

    @property
    def stopping(self) -> bool:
        """Whether a run is about to end because a stop of it was requested."""
        return self._requested_stop or (self.status is not None and self.status.stopping)

    def ends(self, pipeline: StoredPipeline) -> bool:
        """Returns whether the run is to end, because it began before a wish.

        Runs of the server did, since a start fulfils the wish; a later one is a user's own.
        """
        owner = self.status.owner if self.status is not None else None
        if owner is None or pipeline.wish == "running":
            return False
        return self._owns_lock or (owner.since or "") <= (pipeline.wished_at or "")

    @property
    def _owns_lock(self) -> bool:
        owner = self.status.owner if self.status is not None else None
        return bool(owner and self._process and owner.identity == self._process.identity)

    @property
    def starting(self) -> bool:
        """Whether a process was started that does not read its sources yet."""
        return self._process is not None and self.health.state == "starting"

    def compare(self, pipeline: StoredPipeline, entry: CatalogEntry | None) -> bool:
        """Compares the wish with the run. Requests a stop. Returns whether a start is due.

        Raises StateError if the state directory cannot be read.
        """
        wish = pipeline.wish, pipeline.wishes
        is_confirmed = self._wish not in (None, wish) and pipeline.wish == "running"
        self._wish = wish
        if pipeline.wishes != self._wishes:
            self._wishes = pipeline.wishes
            self._failures, self._error = Failures(), None
        if entry is None or entry.state is None:
            self.status, self.health = None, _without_state(entry)
            return False
        if self._reader is None or self._reader.state.root != entry.state:
            self._reader = StatusReader(StateDirectory(entry.state))
        status = self.status = self._reader.read()
        due = False
        if self._elsewhere is not None:
            if is_found(self._elsewhere, status):
                self._process, self._elsewhere = self._launcher.adopt(self._elsewhere), None
            elif entry.stored or is_confirmed:
                self._pipelines.end_start(self._elsewhere.run)
                self._elsewhere = None
        if status.owner is not None:
            self._compare_run(pipeline, entry.state, status)
        elif self._process is not None and self._process.alive:
            self._limit_start()
        elif self._process is not None or self._has_lock:
            self._end(pipeline, status)
        elif self._elsewhere is None:
            due = pipeline.wish != "stopped" and time.monotonic() >= self._failures.next_start
        self.health = self._health(pipeline, entry, status)
        return due

    def start(self, pipeline: StoredPipeline, entry: CatalogEntry) -> None:
        """Starts the run of a pipeline."""
        run = new_run_id()
        author = SERVER if self._failures.any else pipeline.wished_by or SERVER
        if not self._pipelines.begin_start(pipeline.id, run, pipeline.version, author):
            return
        try:
            process = self._launcher.start(
                pipeline.id, entry.file, run, fresh=pipeline.fresh, connections=entry.connections,
                share=None if pipeline.ejected else entry.share,
            )  # fmt: skip
        except OSError as error:
            message = f"the process of the run cannot be started: {error.strerror}"
            self._error = Reason("run-not-started", message)
            self._failures.add(time.monotonic(), None)
            return
        self._process, self._started_at, self._cancelled_at = process, time.monotonic(), None
        self._pipelines.set_process(run, process.pid, process.identity)
        self.health = Health("starting", pipeline.wished_at)
        self._log.info("run started", file=str(entry.file), run=run, pid=process.pid)

    def _compare_run(self, pipeline: StoredPipeline, state: Path, status: Status) -> None:
        """Requests the stop of a run that is to end, and records that it has reset its state."""
        self._has_lock, self._error = True, None
        if self._owns_lock and pipeline.fresh and pipeline.wish == "running":
            self._pipelines.end_fresh(pipeline.id, pipeline.wishes)
        if pipeline.failed_starts and not pipeline.ejected and self._has_written(status.numbers):
            self._pipelines.reset_failed_starts(pipeline.id)
        if self.ends(pipeline):
            self._requested_stop = True
            if not status.stopping:
                (state / "stop").touch(FILE_MODE)

    def _has_written(self, numbers: Snapshot | None) -> bool:
        """Returns whether the run has written a batch, which proves its start in a share."""
        run = self._process.run if self._process is not None else None
        return numbers is not None and numbers["run"] == run and numbers["batches"] > 0

    def _limit_start(self) -> None:
        """Cancels a start that has not locked the state in time, and kills a host that hangs."""
        if self._has_lock or self._process is None:
            return
        if self._cancelled_at is None:
            if time.monotonic() - self._started_at > START_SECONDS:
                self._cancelled_at = time.monotonic()
                self._process.cancel()
        elif time.monotonic() - self._cancelled_at > CANCEL_SECONDS:
            self._process.kill()

    def _end(self, pipeline: StoredPipeline, status: Status) -> None:
        """Acts on the end of a run: a restart, or none."""
        process, last = self._process, status.runs[0] if status.runs else None
        requested_stop = self._requested_stop
        self._process, self._has_lock, self._requested_stop = None, False, False
        was_cancelled, self._cancelled_at = self._cancelled_at is not None, None
        exit_code = process.exit_code if process is not None else None
        if process is not None:
            self._pipelines.end_start(process.run)
            if last is not None and last.id != process.run:
                last = None
            if last is not None and pipeline.fresh and pipeline.wish == "running":
                self._pipelines.end_fresh(pipeline.id, pipeline.wishes)
            if self._leave_host(pipeline, process, was_cancelled=was_cancelled):
                return
        if pipeline.wish == "restarted" or (pipeline.wish == "running" and requested_stop):
            return  # a start that came after the stop
        if was_cancelled:
            self._error = _NOT_LOCKED
            self._fail(pipeline, None, None, exit_code)
            return
        if exit_code is None and last is not None:
            exit_code = last.exit_code
        if exit_code == 0 or (last is not None and last.ending not in ("failed", "killed")):
            if pipeline.wish == "running":
                self._pipelines.give_up(pipeline.id, pipeline.wishes, None)
            return
        self._fail(pipeline, last, process, exit_code)

    def _leave_host(
        self, pipeline: StoredPipeline, process: RunProcess | SharedRun, *, was_cancelled: bool
    ) -> bool:
        """Counts a start that failed with its host, or that was cancelled in the host.

        Returns whether the run needs a new host.
        """
        numbers = self.status.numbers if self.status is not None else None
        ended_host = process.host_ended and (
            self.health.state == "starting" or in_first_batch(numbers, process.run)
        )
        if ended_host or (was_cancelled and isinstance(process, SharedRun)):
            self._pipelines.add_failed_start(pipeline.id, pipeline.wishes)
            if pipeline.failed_starts + 1 == EJECTING_STARTS:
                self._log.warning("ejected from the share", run=process.run, reason=EJECTED)
        needs_new_host = process.needs_new_host
        process.forget()
        return needs_new_host

    def _fail(
        self, pipeline: StoredPipeline, last: FinishedRun | None,
        process: RunProcess | SharedRun | None, exit_code: int | None,
    ) -> None:  # fmt: skip
        """Records a failed run. Without a run in the history its log has the reason."""
        if last is None and process is not None:
            self._error = last_error(self._launcher.logs / pipeline.id, process.run) or Reason(
                "run-not-started", f"the run ended before its start, with exit code {exit_code}",
                "Read the output of the run.",
            )  # fmt: skip
        if pipeline.wish != "running":
            return
        if self._error is not None and self._error.code == ALREADY_RUNNING:
            self._failures.add_rejection(time.monotonic())
            return
        self._failures.add(time.monotonic(), exit_code)
        if self._failures.is_final or self._failures.crash_looping:
            assert self.status is not None
            state: HealthState = "crash-looping" if self._failures.crash_looping else "failed"
            found = health_of(self.status)
            reason = self._error or found.reason
            health = asdict(Health(state, found.since, reason))
            self._pipelines.give_up(pipeline.id, pipeline.wishes, health)

    def _health(self, pipeline: StoredPipeline, entry: CatalogEntry, status: Status) -> Health:
        found = health_of(status)
        if status.owner is not None:
            return found
        if self._process is not None:
            return Health("starting", pipeline.wished_at)
        if self._elsewhere is not None:
            return Health("unknown", self._elsewhere.time, reason_of(self._elsewhere))
        if pipeline.failure is not None:
            return Health.from_json(pipeline.failure)
        if self._failures.any:
            reason = self._error or found.reason
            return Health("retrying", found.since, reason, _time(self._failures.next_start))
        if entry.errors:
            unknown = Health("unknown", found.since)
            worst = max(found, unknown, key=lambda each: each.severity)
            return replace(worst, reason=_first_error(entry))
        if found.state == "stopped" and pipeline.wished_by and pipeline.wish == "stopped":
            by = Reason("stopped-by", f"stopped by {pipeline.wished_by}")
            return Health("stopped", found.since or pipeline.wished_at, by)
        return found


def in_first_batch(numbers: Snapshot | None, run: str) -> bool:
    """Returns whether a run has begun its first batch and not ended it."""
    if numbers is None or numbers["run"] != run or numbers["batches"]:
        return False
    return any(query["batch"] is not None for query in numbers["queries"].values())


def _without_state(entry: CatalogEntry | None) -> Health:
    if entry is None:
        hint = "Restore the file, or delete the pipeline."
        return Health("unknown", None, Reason("missing-file", "the file does not exist", hint))
    return Health("unknown", None, _first_error(entry))


def _first_error(entry: CatalogEntry) -> Reason:
    error = entry.errors[0]
    return Reason(error["code"], error["message"], error.get("hint"))


def _time(monotonic: float) -> str:
    moment = time.time() + monotonic - time.monotonic()
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))

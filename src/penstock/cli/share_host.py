"""Host of a share, which `penstock serve` starts: several pipelines in one process.

    python -m penstock.cli.share_host SHARE DIRECTORY LOGS

The standard input is the pipe of requests in the directory of the host. Each run has the state
directory, the log, the status and the history of a run by `penstock run`.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

from penstock import app
from penstock.cli.log_view import LogView, log_error
from penstock.core import log
from penstock.core.deferred_pandas import defer_pandas
from penstock.core.error_report import format_error
from penstock.core.errors import Bug, PenstockError, flatten_errors
from penstock.core.exits import exception_text
from penstock.core.files.rotated_file import open_rotated
from penstock.deploy.project import python_files
from penstock.plan.model import Plan
from penstock.runtime.handle import RunHandle
from penstock.runtime.run import Run
from penstock.runtime.sharing.directory import HostDirectory, Request, RunEnd
from penstock.runtime.sharing.host import serve
from penstock.runtime.sharing.modules import LoadedModules
from penstock.runtime.sharing.spark import SharedSpark


class SharedRuns:
    """Runs of pipelines in the Spark of a share."""

    def __init__(self, share: str, spark_log: Path) -> None:
        self._spark, self._modules = SharedSpark(share, spark_log), LoadedModules(share)
        self._handles: set[RunHandle] = set()
        self._cancelled: set[str] = set()
        self._stopping = False

    @property
    def broken(self) -> bool:
        """Whether Spark has ended by itself or was killed."""
        return self._spark.broken

    def cancel(self, run: str) -> None:
        """Ends a run that has not locked its state as soon as its thread continues."""
        self._cancelled.add(run)
        for handle in list(self._handles):
            if handle.id == run:
                handle.stop()

    def stop(self) -> None:
        """Stops all runs after their batches, or at once when called again."""
        self._stopping = True
        for handle in list(self._handles):
            handle.stop()

    def close(self) -> None:
        """Ends Spark."""
        self._spark.close()

    def perform(self, request: Request) -> RunEnd:
        """Performs a run, and logs its errors."""
        with open_rotated(Path(request.log_file)) as file:
            facts: dict[str, Any] = {"run": request.run}
            try:
                plan = app.plan(request.file, env={**os.environ, **request.variables})
                facts["pipeline"] = plan.name
                if not self._modules.add(python_files(plan)):
                    return RunEnd(needs_new_host=True)
                view = LogView(plan, [Path(request.file)], "json", "info", file, request.run)
                code = self._run(plan, request, view)
            except Exception as error:
                found = error if isinstance(error, PenstockError) else _bug(error)
                for each in flatten_errors(found):
                    log_error(log.make("json", "info", file, **facts), each)
                print(format_error(found), file=sys.stderr, flush=True)
                code = found.policy.exit_code
        return RunEnd(code, host_ended=code != 0 and self.broken)

    def _run(self, plan: Plan, request: Request, view: LogView) -> int:
        options = app.RunOptions(
            fresh=request.fresh, log=view.log, on_start=view.begin, on_tick=view.tick,
            on_note=view.note, id=request.run,
        )  # fmt: skip
        handle = RunHandle(plan, view.log, request.run)
        self._handles.add(handle)
        try:
            if self._stopping or request.run in self._cancelled:
                return 0
            with self._spark.used(plan.spec.runtime, request.file), view:
                Run(handle, options).run(None)
                outcome = handle.wait()
        finally:
            self._handles.remove(handle)
        assert outcome is not None
        view.end(outcome)
        return outcome.exit_code


def _bug(error: Exception) -> Bug:
    traceback.print_exception(error)
    return Bug(
        f"{type(error).__name__}: {exception_text(error)}",
        hint="Report the defect of Penstock. The traceback is in the output of the share.",
    )


def main(words: list[str]) -> int:
    """Runs the host of a share."""
    defer_pandas()
    share, directory, logs = words[0], Path(words[1]), Path(words[2])
    runs = SharedRuns(share, logs / "spark.log")
    try:
        serve(HostDirectory(directory), runs)
    finally:
        runs.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

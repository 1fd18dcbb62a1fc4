"""Control of pipelines from outside their runs: status, stop, history and dead letters.

The commands `status`, `stop` and `dead` use it. The control works on the state directory. The run
may belong to another process, or to another machine that shares the directory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.plan.model import Plan
from penstock.runtime import stop as stop_file
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state import status as status_file
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.pipeline import open_state
from penstock.runtime.state.status import FinishedRun, Owner, Status


@dataclass(frozen=True)
class PipelineControl:
    """The state of a pipeline and requests to its run. `path` is the state directory."""

    path: Path

    @classmethod
    def of(cls, plan: Plan) -> PipelineControl:
        """Returns the control of a plan's pipeline.

        Raises StateError if the state belongs to a pipeline of the same name in another file.
        """
        return cls(open_state(plan).root)

    def status(self) -> Status:
        """Returns the status, also of a pipeline without runs."""
        return Status.of(self._state)

    def stop(self, timeout: float) -> Owner | None:
        """Stops the current run and returns its owner; None without a run.

        Raises StateError if the run does not end within `timeout` seconds.
        """
        return stop_file.stop_run(self._state, timeout)

    def history(self) -> list[FinishedRun]:
        """Returns the finished runs, last first."""
        return status_file.history(self._state)

    def dead_letters(self) -> DeadLetters:
        """Returns the dead letters of the state directory."""
        return DeadLetters(self._state.dead_letters)

    @property
    def _state(self) -> StateDirectory:
        return StateDirectory(self.path)

"""Control of a pipeline from outside its run: status, stop, history, dead letters, replay, taps.

The commands `status`, `stop`, `dead` and `tap` use it. The control works on the state directory.
The run may belong to another process, or to another machine that shares the directory.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.errors import UserError
from penstock.plan.model import Plan
from penstock.runtime import stop as stop_file
from penstock.runtime.dead_letters.dead_letter import DeadLetter
from penstock.runtime.dead_letters.replay_record import ReplayRecord, ReplayResult
from penstock.runtime.dead_letters.selection import (
    ALL,
    DeadLetterList,
    Selection,
    require_known,
)
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state import status as status_file
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.lock import hint_if_running
from penstock.runtime.state.pipeline import open_state
from penstock.runtime.state.status import FinishedRun, Owner, Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.taps.listener import Tap

_WHILE_RUNNING_ELSEWHERE = (
    "Remove the dead letters on the machine of the run, or stop the pipeline with penstock stop."
)


@dataclass(frozen=True)
class PipelineControl:
    """The state of a pipeline, requests to its run, and its dead letters.

    Each call reads the state directory again, which need not exist. The calls may come from several
    threads. All of them raise StateError if the directory cannot be read or is damaged.
    """

    plan: Plan
    state: StateDirectory

    @classmethod
    def of(cls, plan: Plan) -> PipelineControl:
        """Returns the control of a plan's pipeline.

        Raises StateError if the state belongs to a pipeline of the same name in another file.
        """
        return cls(plan, open_state(plan))

    def status(self) -> Status:
        """Returns the status, also of a pipeline without runs."""
        self.state.refresh()
        return Status.of(self.state)

    def request_stop(self) -> Owner | None:
        """Requests a stop of the current run and returns its owner; None without a run."""
        return stop_file.request_stop(self.state)

    def stop(self, timeout: float) -> Owner | None:
        """Stops the current run and returns its owner; None without a run.

        Raises StateError if the run does not end within `timeout` seconds.
        """
        return stop_file.stop_run(self.state, timeout)

    def history(self) -> list[FinishedRun]:
        """Returns the finished runs, last first."""
        self.state.refresh()
        return status_file.history(self.state)

    def dead_letters(self, selection: Selection = ALL) -> DeadLetterList:
        """Returns the selected dead letters of the state directory, in order of arrival.

        Dead letters in a sink `dead_letter` are not included. Raises UserError if neither a dead
        letter nor the plan has the node, and if no dead letter has the code or the ID.
        """
        self.state.refresh()
        return selection.select(self._store.read(), self.plan.nodes)

    def dead_letter(self, id: str) -> DeadLetter:
        """Returns the dead letter whose ID starts with `id`.

        Raises UserError if there is none or more than one.
        """
        found = self.dead_letters(Selection(id=id))
        if len(found) > 1:
            ids = ", ".join(found.table.column("id").to_pylist()[:5])
            raise UserError(
                f'the id "{id}" is ambiguous: {len(found)} dead letters match',
                code="ambiguous-id", hint=f"Write more characters of the id: {ids}.",
            )  # fmt: skip
        (letter,) = found.newest(1)
        return letter

    def remove_dead_letters(self, ids: Collection[str]) -> int:
        """Removes dead letters permanently, and returns their number.

        Ignores IDs without a dead letter. Raises StateError if the state is in an object store and
        a run on another machine owns it.
        """
        with hint_if_running(_WHILE_RUNNING_ELSEWHERE), self.state.changed():
            found = self.dead_letters().ids.intersection(ids)
            self._store.remove(found)
        return len(found)

    def replay(
        self,
        ids: Collection[str] | None = None,
        *,
        force: bool = False,
        spark: SparkSession | None = None,
    ) -> ReplayResult:
        """Replays dead letters (None: all) from the nodes where they failed.

        Finishes an interrupted replay first. Skips dead letters above a stateful node unless
        `force`. Starts a Spark session if it has something to replay and `spark` is None. Raises
        UserError for an unknown ID, StateError while the pipeline runs, and PenstockError if a sink
        cannot be reached. All dead letters are kept after an error.
        """
        stored, interrupted = self.dead_letters().ids, ReplayRecord.read(self.state)
        require_known(ids or (), stored, interrupted.ids if interrupted else ())
        if interrupted is None and not (stored if ids is None else ids):
            return ReplayResult()
        from penstock.runtime.dead_letters.replay import replay

        return replay(self.plan, self.state, ids, force=force, spark=spark)

    def tap(self, node: str, rows: int) -> Tap:
        """Opens a tap on a node of the current run: at most `rows` rows of a batch.

        The caller closes the tap. Raises StateError without a run.
        """
        from penstock.runtime.taps.listener import Tap

        return Tap(self.state, node, rows)

    @property
    def _store(self) -> DeadLetters:
        return DeadLetters(self.state.dead_letters)

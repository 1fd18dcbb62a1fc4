"""The plan of the last run, which is compared with the plan of a run and replaced by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.plan import fingerprint
from penstock.plan.model import Plan
from penstock.runtime.backfills.sink_starts import find_starts, write_starts
from penstock.runtime.run_options import RunOptions
from penstock.runtime.state.compatibility import check_changes, check_complete, find_new_columns
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.schemas import apply_pins

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RecordedPlan:
    """The plan of the last run in a state directory. The user is notified of changes."""

    def __init__(self, state: StateDirectory, options: RunOptions) -> None:
        self._state, self._options = state, options
        self.has_changed = False
        """Whether the plan of the run has compatible changes."""

    def check(self, plan: Plan) -> None:
        """Checks that the state directory fits the plan. Raises StateError.

        A plan with unknown columns is compared with the last plan once its columns are inferred.
        """
        if self._options.fresh:
            return
        if self._options.backfill is None:
            check_complete(self._state)
        if apply_pins(plan, self._state):
            self.check_changes(plan)

    def check_changes(self, plan: Plan) -> None:
        """Compares a plan whose columns are known. Raises StateError."""
        for change in check_changes(plan, self._state):
            self.has_changed = True
            if self._options.backfill is None:
                self._options.note(f"changed: {change.subject}: {change.reason}")

    def replace(self, plan: Plan, types: Mapping[str, StructType]) -> None:
        """Records the plan of this run, for the comparison with the next one."""
        columns = {node.name: types[node.inputs[0]].names for node in plan.of("sink")}
        for change in find_new_columns(plan, columns, self._state):
            self._options.note(f"changed: {change.subject}: {change.reason}")
        write_starts(self._state, find_starts(plan, self._state))
        definition = fingerprint.fingerprint(plan, self._state.key())
        self._state.write("plan.json", {**definition, "columns": columns})

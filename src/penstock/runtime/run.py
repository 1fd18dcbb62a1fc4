"""A run of a plan: its state, its session, its supervision and its entry in the history."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Literal

from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, StateError, UserError
from penstock.core.units import binary_size_text
from penstock.plan import fingerprint
from penstock.plan.make import with_primary_keys
from penstock.plan.model import Plan
from penstock.plan.rewrite import assign_owner
from penstock.runtime.backfills.backfill import Backfill, check_backfill, prepare_backfill
from penstock.runtime.backfills.sink_starts import find_starts, write_starts
from penstock.runtime.backlog import count_backlog
from penstock.runtime.handle import RunHandle
from penstock.runtime.retry import restart_policy, retry
from penstock.runtime.run_options import RunOptions, Until
from penstock.runtime.session import resources, session, spark_settings
from penstock.runtime.state.changed_schemas import (
    apply_changes,
    changed_schema_error,
    pin_changes,
)
from penstock.runtime.state.compatibility import (
    check_changes,
    check_complete,
    check_states,
    find_new_columns,
)
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.state.pipeline import open_state, record_files
from penstock.runtime.state.primary_keys import resolve_primary_keys
from penstock.runtime.state.schemas import apply_pins, resolve_schemas
from penstock.spec.runtime_models import Restart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from penstock.engine.build import Builder
    from penstock.engine.spark_session.jvm import Length
    from penstock.engine.spark_session.memory import Resources
    from penstock.runtime.outcome import Outcome
    from penstock.runtime.supervise import Supervisor

EndOfRun = Literal["stopped", "caught_up", "complete"]
LARGE_BACKLOG = 8_000_000
"""The number of records that take minutes."""
LARGE_STATEFUL_BACKLOG = 1_000_000
"""The same for stateful transforms, where a record takes several times as much CPU in Java."""


def check_options(plan: Plan, options: RunOptions) -> None:
    """Raises UserError for options that contradict each other or the plan."""
    if options.backfill is None:
        return
    if options.fresh:
        raise UserError(
            "expected --fresh or --backfill, found both",
            code="fresh-backfill",
            hint="Run with --fresh: all sinks then start at the beginning.",
        )
    check_backfill(plan, options.backfill)


class Run:
    """A run of the plan of a handle."""

    def __init__(self, handle: RunHandle, options: RunOptions) -> None:
        self.handle, self.options = handle, options
        self.log, self.stop = handle.log, handle.stop_request
        self.state = open_state(handle.plan)
        self._is_changed = False

    def run(self, spark: SparkSession | None) -> None:
        """Runs the plan in this session, or in one of its own, to its end.

        The handle has the outcome, or the error with which the run could not start.
        """
        try:
            self.handle.end(self._run(spark))
        except BaseException as error:
            self.handle.end(None, error)

    def start(self, spark: SparkSession | None) -> None:
        """Runs the plan in a thread of its own."""
        name = f"penstock-run-{self.handle.id}"
        threading.Thread(target=self.run, args=(spark,), name=name, daemon=True).start()

    def _run(self, spark: SparkSession | None) -> Outcome:
        with ExitStack() as stack:
            listen = self.options.listen or self.handle.plan.spec.runtime.endpoints.listen
            if listen is not None:
                self._serve_metrics(listen, stack)
            stack.enter_context(self.state.locked())
            note = record_files(self.handle.plan, self.state)
            if note is not None:
                self._note(note)
            self._reset_state()
            self.handle.plan = self._resolve_primary_keys(self.handle.plan)
            self._check_state(self.handle.plan)
            plan = assign_owner(self.handle.plan, self.state.id())
            backfill = self._prepare_backfill(plan)
            plan = plan if backfill is None else backfill.plan
            spark = self._enter_session(plan, spark, stack)
            self.handle.session = spark
            if backfill is not None:
                return self._supervise_backfill(backfill, spark)
            return self._supervise(plan, spark)

    def _enter_session(
        self, plan: Plan, spark: SparkSession | None, stack: ExitStack
    ) -> SparkSession:
        from penstock.engine.spark_session.settings import apply_settings
        from penstock.engine.spark_session.shared_state import share_state

        if spark is not None:
            apply_settings(spark, spark_settings(plan.spec.runtime, plan.spec.runtime.state_store))
        else:
            length = expected_length(plan, self.state, self.options.until)
            chosen = self._choose_resources(plan)
            spark = stack.enter_context(
                session(plan, log_file=self.state.log, length=length, chosen=chosen, log=self.log)
            )
        share_state(spark, self.state.lock, self.log)
        return spark

    def _choose_resources(self, plan: Plan) -> Resources:
        chosen = resources(plan)
        if chosen.memory is not None:
            self.log.info(
                "memory", heap=binary_size_text(chosen.heap),
                available=binary_size_text(chosen.memory.available),
                total=binary_size_text(chosen.memory.total),
            )  # fmt: skip
        return chosen

    def _serve_metrics(self, listen: str, stack: ExitStack) -> None:
        from penstock.runtime.monitoring import monitoring

        url = stack.enter_context(monitoring(self.handle, listen))
        self.log.info("serving metrics", url=url)

    def _note(self, text: str) -> None:
        if self.options.on_note is not None:
            self.options.on_note(text)

    # The state and the plan of the last run

    def _reset_state(self) -> None:
        """Resets the state directory with `fresh`."""
        if self.options.fresh:
            removed = ", ".join(self.state.contents()) or "nothing"
            self.state.reset()
            self._note(f"Reset state: removed {removed}. Sink output is unchanged.")

    def _check_state(self, plan: Plan) -> None:
        """Checks that the state directory fits the plan.

        A plan with unknown columns is compared with the last plan once its columns are inferred.
        """
        if self.options.fresh:
            return
        if self.options.backfill is None:
            check_complete(self.state)
        if apply_pins(plan, self.state):
            self._check_changes(plan)

    def _check_changes(self, plan: Plan) -> None:
        for change in check_changes(plan, self.state):
            self._is_changed = True
            if self.options.backfill is None:
                self._note(f"changed: {change.subject}: {change.reason}")

    def _record_plan(self, plan: Plan, types: Mapping[str, StructType]) -> None:
        """Records the plan of this run, for the comparison with the next one."""
        columns = {node.name: types[node.inputs[0]].names for node in plan.of("sink")}
        for change in find_new_columns(plan, columns, self.state):
            self._note(f"changed: {change.subject}: {change.reason}")
        write_starts(self.state, find_starts(plan, self.state))
        definition = fingerprint.fingerprint(plan, self.state.key())
        self.state.write("plan.json", {**definition, "columns": columns})

    def _resolve_primary_keys(self, plan: Plan) -> Plan:
        """Returns the plan with the primary keys that the systems of its sources declare."""
        return retry(
            lambda: resolve_primary_keys(plan, self.state, pin=True), self._start_policy(plan),
            self.log, self.stop,
        )  # fmt: skip

    def _start_policy(self, plan: Plan) -> Restart:
        endless = _until(plan, self.options) == "stopped"
        return restart_policy(plan.spec.runtime.restart, endless=endless)

    def _resolve_schemas(self) -> dict[str, PenstockError]:
        """Sets the columns of sources. Returns the errors of sources without a schema."""
        plan = self.handle.plan
        errors: dict[str, PenstockError] = {}
        inferred = retry(
            lambda: resolve_schemas(plan, self.state, errors=errors), self._start_policy(plan),
            self.log, self.stop,
        )  # fmt: skip
        for schema in inferred:
            columns = ", ".join(f"{field.name} {field.type}" for field in schema.columns)
            self.log.info("inferred schema", source=schema.node, columns=columns)
        if inferred and not errors:
            self._check_changes(plan)
        return errors

    def _prepare_backfill(self, plan: Plan) -> Backfill | None:
        if self.options.backfill is None:
            return None
        resolve_schemas(plan, self.state, pin=False)
        return prepare_backfill(plan, self.state, self.options.backfill)

    # Supervision

    def _supervise(self, plan: Plan, spark: SparkSession) -> Outcome:
        from penstock.engine.build import Builder
        from penstock.engine.checks.column_types import column_types

        builder = Builder(plan, spark)
        types = column_types(builder, self._resolve_schemas(), unread=True)
        if self._is_changed:
            check_states(builder, self.state)
        self._record_plan(plan, types)
        until = _until(plan, self.options)
        supervisor = self._supervisor(builder, self.state, until)
        return self._recorded(plan, lambda: self._follow_schemas(supervisor, until))

    def _follow_schemas(self, supervisor: Supervisor, until: EndOfRun) -> Outcome:
        """Runs the queries, again after each change of the schema of a source."""
        outcome = supervisor.run()
        while outcome.ending == "changed_schema":
            builder = self._change_schemas(supervisor.session)
            outcome = self._supervisor(builder, self.state, until).run()
        return outcome

    def _change_schemas(self, spark: SparkSession) -> Builder:
        """Returns the builder of the plan with the columns that sources have now.

        Raises the errors of a plan that these columns, or its state, do not fit.
        """
        from penstock.engine.build import Builder
        from penstock.engine.checks.column_types import column_types

        self.handle.plan = with_primary_keys(self.handle.plan, {})
        plan = assign_owner(self.handle.plan, self.state.id())
        changed = apply_changes(plan, self.state)
        for schema in changed:
            columns = ", ".join(f"{field.name} {field.type}" for field in schema.columns)
            self.log.info("changed schema", source=schema.node, columns=columns)
        builder = Builder(plan, spark)
        try:
            self._check_changes(plan)
            types = column_types(builder, unread=True)
            check_states(builder, self.state)
        except StateError as error:
            raise changed_schema_error(plan, changed, error) from error
        pin_changes(changed, self.state)
        self._record_plan(plan, types)
        return builder

    def _supervise_backfill(self, backfill: Backfill, spark: SparkSession) -> Outcome:
        from penstock.engine.build import Builder
        from penstock.engine.checks.column_types import column_types

        builder = Builder(backfill.plan, spark)
        column_types(builder)
        supervisor = self._supervisor(builder, backfill.state, backfill.until)
        outcome = self._recorded(backfill.plan, supervisor.run)
        if outcome.ending == backfill.until:
            backfill.complete(self.state)
        return outcome

    def _supervisor(self, builder: Builder, state: StateDirectory, until: EndOfRun) -> Supervisor:
        from penstock.runtime.supervise import Supervisor

        return Supervisor(
            builder.plan, builder.session, state, until=until,
            metrics=self.handle.metrics, log=self.log, stop=self.stop.of_part(),
            on_tick=self.options.on_tick, analysis=builder.analysis,
        )  # fmt: skip

    def _recorded(self, plan: Plan, supervise: Callable[[], Outcome]) -> Outcome:
        """Runs queries to their end, and records the run in the history."""
        run = {"id": self.handle.id, "began": now()}
        self.state.begin_run(run)
        if self.options.signals:
            self.stop.install_signal_handlers(self.options.on_note)
        if self.options.on_start is not None:
            self.options.on_start(plan, self.handle.metrics)
        outcome: Outcome | None = None
        try:
            outcome = supervise()
            return outcome
        finally:
            self.stop.restore_signal_handlers()
            errors = outcome.errors if outcome else _current_error()
            with suppress(StateError):
                self.state.write("status.json", self.handle.metrics.snapshot())
                self.state.end_run(
                    run,
                    ended=now(),
                    ending=outcome.ending if outcome else "failed",
                    errors={name: to_dicts(error) for name, error in errors.items()},
                )


def expected_length(plan: Plan, state: StateDirectory, until: Until) -> Length:
    """Returns the expected duration of a run, by its sources and their backlog."""
    if not plan.bounded and until != "caught_up":
        return "endless"
    stateful = any(node.stateful for node in plan.nodes.values())
    many = LARGE_STATEFUL_BACKLOG if stateful else LARGE_BACKLOG
    return "minutes" if count_backlog(plan, state) >= many else "seconds"


def _until(plan: Plan, options: RunOptions) -> EndOfRun:
    if options.until == "caught_up":
        return "caught_up"
    return "complete" if options.until == "auto" and plan.bounded else "stopped"


def _current_error() -> dict[str, PenstockError]:
    error = sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1]
    return {"run": error} if isinstance(error, PenstockError) else {}

"""A run of a plan: its state, its session, its supervision and its entry in the history."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, StateError, UserError
from penstock.engine.spark_session.session import end_of_java
from penstock.plan.make import with_primary_keys
from penstock.plan.model import Plan
from penstock.plan.rewrite import assign_owner
from penstock.runtime.backfills.backfill import Backfill, check_backfill, prepare_backfill
from penstock.runtime.backlog import expected_length
from penstock.runtime.handle import RunHandle
from penstock.runtime.retry import restart_policy, retry
from penstock.runtime.run_options import EndOfRun, RunOptions
from penstock.runtime.session import attach_to, session
from penstock.runtime.state.changed_schemas import (
    apply_changes,
    changed_schema_error,
    pin_changes,
)
from penstock.runtime.state.compatibility import check_states
from penstock.runtime.state.directory import StateDirectory, now
from penstock.runtime.state.pipeline import open_state, record_files
from penstock.runtime.state.primary_keys import resolve_primary_keys
from penstock.runtime.state.recorded_plan import RecordedPlan
from penstock.runtime.state.schemas import InferredSchema, resolve_schemas
from penstock.sdk.data_frames import DataFrameSource
from penstock.sdk.phases import PhasedSource
from penstock.spec.runtime_models import Restart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.engine.build import Builder
    from penstock.runtime.outcome import Outcome
    from penstock.runtime.supervise import Supervisor


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
        self.recorded_plan = RecordedPlan(self.state, options)

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
        for warning in self.handle.plan.warnings:
            if warning.code == "unencrypted-credentials":
                self.log.warning("no TLS", at=f"{warning.where}", reason=warning.message)
        with ExitStack() as stack:
            listen = self.options.listen or self.handle.plan.spec.runtime.endpoints.listen
            if listen is not None:
                self._serve_metrics(listen, stack)
            self._export_telemetry(stack)
            stack.enter_context(self.state.locked())
            note = record_files(self.handle.plan, self.state)
            if note is not None:
                self.options.note(note)
            self._reset_state()
            for node in self.handle.plan.of("source"):
                if isinstance(node.source, PhasedSource):
                    node.source.await_receiver()
            self.handle.plan = self._resolve_primary_keys(self.handle.plan)
            self.recorded_plan.check(self.handle.plan)
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
        from penstock.runtime.cluster import executors_of

        if spark is not None:
            attach_to(spark, plan, self.log)
        else:
            length = expected_length(plan, self.state, self.options.until)
            spark = stack.enter_context(
                session(plan, log_file=self.state.log, length=length, log=self.log)
            )
        self._await_executors = stack.enter_context(executors_of(spark, plan, self.state, self.log))
        return spark

    def _serve_metrics(self, listen: str, stack: ExitStack) -> None:
        from penstock.runtime.monitoring import monitoring

        url = stack.enter_context(monitoring(self.handle, listen))
        self.log.info("serving metrics", url=url)

    def _export_telemetry(self, stack: ExitStack) -> None:
        from penstock.runtime.telemetry import endpoint_of, exporting

        endpoint = endpoint_of(self.handle, self.options.otlp_endpoint)
        if endpoint is not None:
            stack.enter_context(exporting(self.handle, endpoint))

    # The state and the plan of the last run

    def _reset_state(self) -> None:
        """Resets the state directory with `fresh`."""
        if self.options.fresh:
            removed = ", ".join(self.state.contents()) or "nothing"
            self.state.reset()
            self.state.storage.sync(self.state.root)
            self.options.note(f"Reset state: removed {removed}. Sink output is unchanged.")

    def _resolve_primary_keys(self, plan: Plan) -> Plan:
        """Returns the plan with the primary keys that the systems of its sources declare."""
        return retry(
            lambda: resolve_primary_keys(plan, self.state, pin=True), self._start_policy(plan),
            self.log, self.stop,
        )  # fmt: skip

    def _start_policy(self, plan: Plan) -> Restart:
        endless = self.options.end(plan) == "stopped"
        return restart_policy(plan.spec.runtime.restart, endless=endless)

    def _resolve_schemas(self) -> dict[str, PenstockError]:
        """Sets the columns of sources. Returns the errors of sources without a schema."""
        plan = self.handle.plan
        errors: dict[str, PenstockError] = {}
        inferred = retry(
            lambda: resolve_schemas(plan, self.state, errors=errors), self._start_policy(plan),
            self.log, self.stop,
        )  # fmt: skip
        self._log_schemas("inferred schema", inferred)
        if inferred and not errors:
            self.recorded_plan.check_changes(plan)
        return errors

    def _log_schemas(self, event: str, schemas: Sequence[InferredSchema]) -> None:
        for schema in schemas:
            columns = ", ".join(f"{field.name} {field.type}" for field in schema.columns)
            self.log.info(event, source=schema.node, columns=columns)

    def _prepare_backfill(self, plan: Plan) -> Backfill | None:
        if self.options.backfill is None:
            return None
        resolve_schemas(plan, self.state, pin=False)
        return prepare_backfill(plan, self.state, self.options.backfill)

    # Supervision

    def _take_snapshots(self, plan: Plan, spark: SparkSession) -> None:
        """Lets Spark read the sources that it reads once."""
        for node in plan.of("source"):
            if isinstance(node.source, DataFrameSource):
                self._await_executors()
                try:
                    retry(
                        partial(node.source.take_snapshot, spark), self._start_policy(plan),
                        self.log, self.stop,
                    )  # fmt: skip
                except PenstockError as error:
                    error.where = plan.locate(error, node)
                    raise

    def _supervise(self, plan: Plan, spark: SparkSession) -> Outcome:
        from penstock.engine.build import Builder
        from penstock.engine.checks.column_types import column_types

        self._take_snapshots(plan, spark)
        builder = Builder(plan, spark)
        types = column_types(builder, self._resolve_schemas(), unread=True)
        if self.recorded_plan.has_changed:
            check_states(builder, self.state)
        self.recorded_plan.replace(plan, types)
        until = self.options.end(plan)
        supervisor = self._supervisor(builder, self.state, until)
        self._await_executors()
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
        self._log_schemas("changed schema", changed)
        builder = Builder(plan, spark)
        try:
            self.recorded_plan.check_changes(plan)
            types = column_types(builder, unread=True)
            check_states(builder, self.state)
        except StateError as error:
            raise changed_schema_error(plan, changed, error) from error
        pin_changes(changed, self.state)
        self.recorded_plan.replace(plan, types)
        return builder

    def _supervise_backfill(self, backfill: Backfill, spark: SparkSession) -> Outcome:
        from penstock.engine.build import Builder
        from penstock.engine.checks.column_types import column_types

        builder = Builder(backfill.plan, spark)
        column_types(builder)
        supervisor = self._supervisor(builder, backfill.state, backfill.until)
        self._await_executors()
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
        self.state.storage.sync(self.state.root)
        if self.options.signals:
            self.stop.install_signal_handlers(self.options.on_note)
        if self.options.on_start is not None:
            self.options.on_start(plan, self.handle.metrics)
        outcome: Outcome | None = None
        try:
            with end_of_java(self.state.log):
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
                    exit_code=outcome.exit_code if outcome else _exit_code(errors),
                    errors={name: to_dicts(error) for name, error in errors.items()},
                )


def _exit_code(errors: Mapping[str, PenstockError]) -> int:
    return max((error.policy.exit_code for error in errors.values()), default=1)


def _current_error() -> dict[str, PenstockError]:
    error = sys.exception() if sys.version_info >= (3, 12) else sys.exc_info()[1]
    return {"run": error} if isinstance(error, PenstockError) else {}

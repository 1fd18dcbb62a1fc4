"""Replay of dead letters from the nodes where they failed."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace

from pyspark.sql import SparkSession

from penstock.core.error_codec import decode
from penstock.core.errors import PenstockError, RecordError, StateError
from penstock.core.log import Silent
from penstock.core.text import plural
from penstock.engine.build import Builder
from penstock.engine.checkpoints.batch_record import BatchRecordFile
from penstock.engine.checks.column_types import column_types
from penstock.engine.failures.row_search import find_failing_rows
from penstock.engine.late.late_rows import CODE as LATE
from penstock.engine.reports.inbox import confirm_reports
from penstock.engine.row_checks.data_errors import SPARK_ERRORS, data_error
from penstock.engine.sinks.sink_rows import make_sink_task, partitioning_of, write_rows
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.plan.model import Plan
from penstock.plan.rewrite import assign_owner
from penstock.runtime.cluster import executors_of
from penstock.runtime.dead_letters.dead_letter import DeadLetter, read_rows
from penstock.runtime.dead_letters.replay_record import ReplayRecord, ReplayResult, SkippedNode
from penstock.runtime.dead_letters.replay_rows import ReplayRows, late_query
from penstock.runtime.dead_letters.replayable import select_replayable
from penstock.runtime.dead_letters.store import Collector, DeadLetters
from penstock.runtime.diagnose import diagnose
from penstock.runtime.session import session
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.lock import hint_if_running
from penstock.runtime.state.primary_keys import resolve_primary_keys
from penstock.runtime.state.schemas import resolve_schemas
from penstock.sdk import BatchId, bisect_failures

MAX_FAILURES = 1000
"""The number of failures found by bisection after which a replay attempts no more dead letters."""
_WHILE_RUNNING = "Stop the pipeline with penstock stop, then replay its dead letters."


def replay(
    plan: Plan,
    state: StateDirectory,
    ids: Collection[str] | None,
    *,
    force: bool = False,
    spark: SparkSession | None = None,
) -> ReplayResult:
    """Locks the state directory and replays its dead letters with these IDs (None: all).

    Without `spark` it starts a session of its own. Raises StateError while the pipeline runs, and
    PenstockError if a sink cannot be reached. All dead letters are kept after an error.
    """
    with hint_if_running(_WHILE_RUNNING), state.locked(), ExitStack() as stack:
        plan = resolve_primary_keys(plan, state)
        resolve_schemas(plan, state)
        plan = assign_owner(plan, state.id())
        if spark is None:
            spark = stack.enter_context(session(plan, log_file=state.log))
        await_executors = stack.enter_context(executors_of(spark, plan, state, Silent()))
        await_executors()
        current = Replay(plan, spark, state)
        try:
            return current.run(ids, force)
        except PenstockError:
            raise
        except Exception as error:
            raise diagnose(plan, current.rows.query, error) from error


class Replay:
    """A replay of dead letters of the state directory, in one batch.

    The caller holds the lock of the state. An interrupted replay is finished first, as the same
    batch, so that sinks with exactly-once delivery skip the batch.
    """

    def __init__(self, plan: Plan, session: SparkSession, state: StateDirectory) -> None:
        self.plan, self.session, self.state = plan, session, state
        self.store = DeadLetters(state.dead_letters)
        self.collector = Collector(plan, state)
        self.builder = Builder(plan, session)
        self.rows = ReplayRows(plan, session, self.builder)
        self.failures: dict[str, RecordError] = {}

    def run(self, ids: Collection[str] | None, force: bool) -> ReplayResult:
        """Replays the dead letters with these IDs (None: all)."""
        result = ReplayResult()
        column_types(self.builder)
        interrupted = ReplayRecord.read(self.state)
        if interrupted is not None:
            result.finished = self._finish(interrupted)
        chosen = self._dead_letters(ids)
        dead_letters, result.skipped = select_replayable(self.plan, chosen, force)
        valid = self.find_valid(dead_letters)
        if valid:
            record = ReplayRecord.create(self.state, [letter.id for letter in valid])
            self._complete(record, valid)
        self._store_failures(dead_letters)
        result.replayed = len(valid)
        result.failed = len(dead_letters) - len(valid)
        return result

    def _dead_letters(self, ids: Collection[str] | None) -> list[DeadLetter]:
        dead_letters = read_rows(self.store.read())
        return [letter for letter in dead_letters if ids is None or letter.id in ids]

    def _finish(self, record: ReplayRecord) -> int:
        """Finishes an interrupted replay. Returns the number of its remaining dead letters.

        Raises StateError if one of the dead letters fails, because a sink may contain its row.
        """
        dead_letters = self._dead_letters(record.ids)
        if not record.written:
            replayable, skipped = select_replayable(self.plan, dead_letters, True)
            if skipped or len(self.find_valid(replayable)) < len(dead_letters):
                raise self._unfinished_error(dead_letters, skipped)
            dead_letters = replayable
        self._complete(record, dead_letters)
        return len(dead_letters)

    def _complete(self, record: ReplayRecord, dead_letters: Sequence[DeadLetter]) -> None:
        """Writes the rows unless they are written, and removes the dead letters."""
        if dead_letters and not record.written:
            self._write(record.name, dead_letters)
            record.mark_written(self.state)
        self.collector.collect(record.name, 0)
        self.store.remove(record.ids)
        record.remove(self.state)
        shutil.rmtree(self.state.spool / record.name, ignore_errors=True)

    def _unfinished_error(
        self, dead_letters: Sequence[DeadLetter], skipped: Sequence[SkippedNode]
    ) -> StateError:
        reasons = [f"{node.node}: {node.reason}" for node in skipped]
        reasons += [error.message for error in self.failures.values()]
        return StateError(
            f"cannot finish an interrupted replay of {plural(len(dead_letters), 'dead letter')}: "
            f"{reasons[0]}",
            code="unfinished-replay",
            hint="Undo the change of the pipeline, or remove the dead letters that fail with "
            "penstock dead remove.",
        )

    def find_valid(self, dead_letters: list[DeadLetter]) -> list[DeadLetter]:
        """Returns the dead letters without errors up to all sinks; adds others to `failures`."""
        decoded = [letter for letter in dead_letters if self._decodes(letter)]
        decoded = self._separate(decoded)
        found = len(self.failures)
        valid: list[DeadLetter] = []
        for start, stop, outcome in bisect_failures(
            len(decoded), lambda a, b: self._attempt(decoded[a:b]), _to_record_error
        ):
            if isinstance(outcome, RecordError):
                self.failures[decoded[start].id] = outcome
                if len(self.failures) - found >= MAX_FAILURES:
                    break
            else:
                valid += decoded[start:stop]
        return valid

    def _separate(self, dead_letters: list[DeadLetter]) -> list[DeadLetter]:
        """Returns the dead letters on whose rows SQL does not fail, as far as one pass finds them.

        Adds the others to `failures`. Late rows are not separated.
        """
        for name in dict.fromkeys(letter.node for letter in dead_letters):
            group = [each for each in dead_letters if each.node == name and not late_query(each)]
            if self.plan.nodes[name].kind == "sink" or not group:
                continue
            try:
                inputs = [rows for _, rows in self.rows.sink_rows(group)]
            except RecordError:
                continue
            errors = find_failing_rows(inputs, self.rows.entries[name])
            owners = self._owners(group) if errors else []
            for row in sorted(errors):
                self.failures.setdefault(group[owners[row]].id, errors[row])
        return [letter for letter in dead_letters if letter.id not in self.failures]

    def _owners(self, group: Sequence[DeadLetter]) -> list[int]:
        """Returns the index of the dead letter of each row that enters a node."""
        node = self.plan.nodes[group[0].node]
        if node.kind != "source":
            return list(range(len(group)))
        counts = (self.rows.decode(node, letter).num_rows for letter in group)
        return [index for index, count in enumerate(counts) for _ in range(count)]

    def _decodes(self, letter: DeadLetter) -> bool:
        node = self.plan.nodes[letter.node]
        if letter.stage != "decode":
            return True
        try:
            self.rows.decode(node, letter)
        except RecordError as error:
            self.failures[letter.id] = error
            return False
        return True

    def _attempt(self, dead_letters: Sequence[DeadLetter]) -> None:
        for _, rows in self.rows.sink_rows(dead_letters):
            rows.write.format("noop").mode("overwrite").save()

    def _write(self, name: str, dead_letters: Sequence[DeadLetter]) -> None:
        batch = BatchId(name, 0)
        folder = self.state.spool / name
        batch_record = BatchRecordFile(folder, 0, lambda: self.state.storage.sync(folder))
        self.collector.clear(name, 0)
        for sink, rows in self.rows.sink_rows(dead_letters):
            attempt = 1 + max(letter.attempt for letter in dead_letters)
            spool = Spool(
                self.plan.name, name, sink.name, "sink", sink.on_error, str(folder),
                attempt=attempt,
            )  # fmt: skip
            task = make_sink_task(sink, spool)
            current = partitioning_of(sink.sink, rows.schema, sink.removed_operation)
            partitioning = batch_record.partitioning(batch, sink.name, current)
            receipts = write_rows(sink.sink, task, rows, batch, partitioning)
            confirm_reports(self.state.spool)
            self.state.storage.check_owner()
            sink.sink.commit(batch, receipts)

    def _store_failures(self, dead_letters: Sequence[DeadLetter]) -> None:
        failed = [self._failed_again(row) for row in dead_letters if row.id in self.failures]
        self.store.replace({letter.id: asdict(letter) for letter in failed}, ())

    def _failed_again(self, letter: DeadLetter) -> DeadLetter:
        error = self.failures[letter.id]
        return replace(
            letter,
            attempt=letter.attempt + 1,
            code=LATE if letter.code == LATE else error.code,
            message=error.reason.removeprefix(f"{letter.node}: "),
        )


def _to_record_error(error: Exception) -> RecordError:
    """Returns the error of a record in an exception of Spark. Raises any other `error`."""
    cause: PenstockError | None = data_error(error)
    if cause is None and isinstance(error, SPARK_ERRORS):
        cause = decode(str(error))
    if isinstance(cause, RecordError):
        return cause
    raise error

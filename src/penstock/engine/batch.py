"""Batch processing: writes one batch of a query to all its sinks."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from penstock.core.error_codec import raised_in
from penstock.core.errors import PenstockError, Transient
from penstock.engine.batch_observer import BatchObserver, Written
from penstock.engine.build import Builder
from penstock.engine.catalyst.executed_plan import PhysicalRows, compute
from penstock.engine.catalyst.variants import variants_to_json
from penstock.engine.checkpoints.batch_record import BatchRecordFile
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.checkpoints.state_age import check_state_age
from penstock.engine.checkpoints.state_storage import LOCAL_QUERY, QueryStorage
from penstock.engine.deduplication.state import KeptRows
from penstock.engine.failures.checked_queries import require_checks
from penstock.engine.failures.failing_row_errors import FailingRowErrors
from penstock.engine.failures.places import FailingRowPlaces
from penstock.engine.failures.valid_rows import valid_rows
from penstock.engine.kept_plans import KeptPlans
from penstock.engine.late.late_rows import LateRows
from penstock.engine.lookups.lookup_table import LOOKUPS
from penstock.engine.reports.inbox import confirm_reports
from penstock.engine.row_checks.data_errors import data_error
from penstock.engine.sink_job import SinkJob
from penstock.engine.sinks.sink_rows import collect_receipts, computed
from penstock.engine.sources.truncated_batches import begins_truncated
from penstock.engine.tapped_rows import copy_for_taps
from penstock.engine.updating.batch import UpdatingBatch
from penstock.engine.updating.versions import StateVersion
from penstock.engine.watermarks.source_watermarks import SourceWatermarks
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.plan.queries import shared_nodes
from penstock.sdk import BatchId
from penstock.sdk.retries import reported_retries


@dataclass
class BatchRunner:
    """The function that Spark calls for each batch of a query.

    `error` keeps an exception of the run, because its type is lost in the JVM. `lock` is held while
    a batch is in progress. `late` finds the late rows of each batch, `watermarks` advances
    the watermarks of its sources. `kept_rows` is the state of the deduplications of the stream.
    `places` finds the places of failing rows in their sources.
    `written` is the number of the last batch that all sinks committed. `storage` makes the files of
    a batch durable: before its output those that repeat it, after its output its state.
    """

    builder: Builder
    query: Query
    checkpoint: Path
    observer: BatchObserver
    late: LateRows | None = None
    watermarks: SourceWatermarks | None = None
    kept_rows: KeptRows | None = None
    places: FailingRowPlaces | None = None
    error: BaseException | None = None
    written: int | None = None
    storage: QueryStorage = LOCAL_QUERY
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        planned = OffsetLog(self.checkpoint).planned
        self._record = BatchRecordFile(self.checkpoint, planned, self.storage.sync)
        nodes = self.builder.plan.nodes
        self._jobs = {
            name: SinkJob(self.query, nodes[name], self._record) for name in self.query.sinks
        }
        self._plans = KeptPlans(self.query, self._jobs)

    def __call__(self, root: DataFrame, number: int) -> None:
        try:
            with self.lock:
                self.observer.on_begin(self.query, number)
                batch = self._begin(number)
                self._run(root, batch)
                if batch.truncates:
                    self.observer.on_truncated(self.query, number)
                self.storage.stage()
                self.written = number
                self.observer.on_end(self.query, number)
        except BaseException as error:
            self.error = error
            raise

    def _begin(self, number: int) -> BatchId:
        """Returns the ID of a batch, whose entry in the offset log is durable.

        Raises StateError in the first batch of a start if the state is older than a sink.
        """
        log = OffsetLog(self.checkpoint)
        log.sync_planned(number)
        self.storage.sync()
        root = self.builder.plan.nodes.get(self.query.root)
        truncates = begins_truncated(root, self.checkpoint, number)
        batch = BatchId(self._query_id(), number, log.content(number), truncates)
        if self.written is None:
            log.sync_identity()
            for name in self.query.sinks:
                with self._calls(name):
                    check_state_age(self.builder.plan.nodes[name], batch, self.builder.plan.state)
        return batch

    def _run(self, root: DataFrame, batch: BatchId) -> None:
        """Writes a batch to the sinks, unless it has no rows and changes no result."""
        if self.kept_rows is not None:
            self.kept_rows.begin(batch)
        updated = self._skip(root, batch) or self._write_batch(root, batch)
        kept = self.kept_rows.commit(batch) if self.kept_rows is not None else None
        states = [state for state in (updated, kept) if state is not None]
        if states:
            rows, size = sum(s.rows for s in states), sum(s.bytes for s in states)
            self.observer.on_state(self.query, rows, size)
        if self.late is not None:
            self.late.report(batch.number)
        if self.watermarks is not None:
            self.watermarks.advance(batch.query, batch.number)
        self._find_places(root, batch)

    def _find_places(self, root: DataFrame, batch: BatchId) -> None:
        """Finds the places of failing rows. A failure leaves their dead letters without places."""
        if self.places is not None:
            try:
                self.places.find(root.sparkSession, batch.number)
            except Exception as error:
                self.observer.on_unknown_places(self.query, batch.number, error)

    def _write_batch(self, root: DataFrame, batch: BatchId) -> StateVersion | None:
        """Writes a batch to the sinks that have not committed the batch in an earlier attempt.

        Returns the state of the updating transforms, if there is any.
        """
        done = self._record.done(batch)
        self.observer.on_attempt(self.query, batch.number, done)
        pending = [name for name in self.query.sinks if name not in done]
        tapped = {} if done else self.observer.tapped(self.query)
        with ExitStack() as stack:
            updating = stack.enter_context(self._updates(root, batch))
            reused = {} if tapped else self._plans.receipts(root, batch, pending, updating)
            frames: Mapping[str, DataFrame] = {self.query.root: root}
            if not reused:
                frames = stack.enter_context(self._frames(root, tapped))
            for name in pending:
                sink = self.builder.plan.nodes[name]
                self._write(sink, frames, batch, reused.get(name), cached=bool(tapped))
                if name != pending[-1]:
                    self._record.add(batch, name)
            if not pending:
                compute(frames[self.query.root])
            self._observe(frames, batch)
            copy_for_taps(self.builder, self.query, batch.number, frames, tapped, self.observer)
            if updating is None:
                return None
            for name in done:
                self._update_state(self.builder.plan.nodes[name], frames, batch)
            if not (reused or done or tapped):
                self._plans.keep(root, updating)
            return updating.commit()

    def _observe(self, frames: Mapping[str, DataFrame], batch: BatchId) -> None:
        """Copies the rows of a batch for side outputs. A failure affects nothing else."""
        for name, limit in self.query.observed.items():
            try:
                frame = variants_to_json(frames[name])
                count = frame.count()
                rows = frame.limit(limit).toArrow()
            except Exception as error:
                self.observer.on_unobserved(self.query, batch.number, name, error)
            else:
                self.observer.on_rows(self.query, batch.number, name, rows, count)

    def _skip(self, root: DataFrame, batch: BatchId) -> StateVersion | None:
        """Skips a batch without input in an updating query whose results then stay the same.

        Returns its state, or None if the batch is not skipped.
        """
        if not self.query.updating or not self.builder.needs_input(self.query):
            return None
        log, start = OffsetLog(self.checkpoint), StartOffsets(self.checkpoint)
        if not self.builder.plan.reads_sources_only(self.query) or not log.is_empty(
            batch.number, start.read()
        ):
            return None
        updating = UpdatingBatch.begin(
            self.builder.plan, root.sparkSession, self.checkpoint, batch.number
        )
        if updating.removes:
            return None
        state = updating.skip()
        compute(root)
        return state

    @contextmanager
    def _updates(self, root: DataFrame, batch: BatchId) -> Iterator[UpdatingBatch | None]:
        """Yields the changes of the updating transforms in an attempt of a batch."""
        if not self.query.updating:
            yield None
            return
        updating = UpdatingBatch.begin(
            self.builder.plan, root.sparkSession, self.checkpoint, batch.number
        )
        self.builder = replace(self.builder, updating=updating)
        try:
            yield updating
        finally:
            updating.release()

    @contextmanager
    def _frames(self, root: DataFrame, tapped: Collection[str]) -> Iterator[dict[str, DataFrame]]:
        """Yields all frames of the batch; a frame with several readers is computed once."""
        frames = self.builder.build_batch(self.query, root)
        names = (*shared_nodes(self.query, self.builder.plan.nodes), *tapped)
        shared = [frames[name] for name in dict.fromkeys(names)]
        for frame in shared:
            if self.builder.updating is not None:
                self.builder.updating.cache(frame)
            else:
                frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        try:
            yield frames
        finally:
            for frame in shared:
                frame.unpersist()

    def _write(
        self, sink: Node, frames: Mapping[str, DataFrame], batch: BatchId,
        reused: DataFrame | PhysicalRows | None, *, cached: bool,
    ) -> None:  # fmt: skip
        root, job = frames[self.query.root], self._jobs[sink.name]
        try:
            if reused is None:
                with self._calls(sink.name):
                    job.prepare(self.builder, frames)
                receipts = job.write(self.builder, frames, batch, cached=cached)
            else:
                receipts = collect_receipts(reused, batch)
        except Exception as error:
            if not data_error(error):
                raise
            with self._computed_root(root):
                receipts = self._write_valid_rows(sink, root, batch, error)
        if self.builder.checks_rows:
            FailingRowErrors(self.builder, self.query, root.sparkSession).report(batch.number)
        self._prepare_commit()
        with self._calls(sink.name):
            sink.sink.commit(batch, receipts)
        self.observer.on_written(self.query, batch.number, sink.name, Written.of(receipts))

    def _prepare_commit(self) -> None:
        """Makes the reports of tasks and the lookup tables of the batch durable.

        A repetition reads the same versions of the tables. Raises StateError if another run may
        have taken over the state.
        """
        confirm_reports(self.builder.spool)
        tables = self.checkpoint / LOOKUPS
        if tables.exists():
            self.storage.storage.sync(tables)
        self.storage.check_owner()

    @contextmanager
    def _computed_root(self, root: DataFrame) -> Iterator[None]:
        """Computes the root once for the search downstream.

        Raises ChecksRequired if SQL fails in the stream and the rows have no checks yet.
        """
        names = self.query.merged or (self.query.root,)
        nodes = [self.builder.plan.nodes[name] for name in names]
        with ExitStack() as stack:
            if any(node.kind != "source" or node.computes_event_time for node in nodes):
                try:
                    stack.enter_context(computed(root))
                except Exception as error:
                    if data_error(error):
                        require_checks(self.builder, self.query, self.checkpoint)
                    raise
            yield

    def _write_valid_rows(
        self, sink: Node, root: DataFrame, batch: BatchId, error: Exception
    ) -> Sequence[dict[str, Any]]:
        """Writes the batch without the records on which SQL fails, and reports the others."""
        builder = replace(self.builder, recomputed_for=sink.name)
        with self._valid_rows(builder, sink, root, batch, error) as rows:
            return self._jobs[sink.name].write_valid(builder, rows, batch)

    def _valid_rows(
        self, builder: Builder, sink: Node, root: DataFrame, batch: BatchId, error: Exception
    ) -> AbstractContextManager[DataFrame]:
        on_step = partial(self.observer.on_search, self.query, batch.number)
        return valid_rows(builder, self.query, sink, root, on_step, batch.number, error)

    def _update_state(self, sink: Node, frames: Mapping[str, DataFrame], batch: BatchId) -> None:
        """Computes the state upstream of a sink that an earlier attempt has written."""
        root = frames[self.query.root]
        try:
            compute(frames[sink.inputs[0]])
        except Exception as error:
            if not data_error(error):
                raise
            builder = replace(self.builder, report_dead_letters=False)
            with (
                self._computed_root(root),
                self._valid_rows(builder, sink, root, batch, error) as rows,
            ):
                compute(rows)

    @contextmanager
    def _calls(self, sink: str) -> Iterator[None]:
        """Reports the transient failures of calls of a sink to the observer."""

        def report(error: PenstockError) -> None:
            self.observer.on_failure(self.query, sink, error)

        with reported_retries(report), raised_in(sink):
            try:
                yield
            except Transient as error:
                report(error)
                raise

    def _query_id(self) -> str:
        """Returns Spark's ID of the query: stable across restarts, new after `--fresh`."""
        return str(json.loads((self.checkpoint / "metadata").read_text())["id"])

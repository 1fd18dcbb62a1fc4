"""Replay of dead letters from the nodes where they failed."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.error_codec import decode
from penstock.core.errors import DecodeError, PenstockError, RecordError, StateError
from penstock.core.text import plural
from penstock.engine.batch_record import BatchRecordFile
from penstock.engine.build import Builder
from penstock.engine.columns import text_columns, to_arrow, to_spark
from penstock.engine.data_errors import data_error
from penstock.engine.sink_rows import make_sink_task, partitioning_of, write_rows
from penstock.engine.spool import Spool
from penstock.engine.variants import json_to_variants
from penstock.engine.watermark import add_event_time
from penstock.plan.model import Node, Plan, Query
from penstock.runtime.dead_letters import Collector, DeadLetters
from penstock.runtime.replay_record import ReplayRecord, ReplayResult, SkippedNode
from penstock.runtime.state import StateDirectory
from penstock.sdk import BatchId, Format, isolate, registry
from penstock.sdk.forked import CRASHED

MAX_FAILURES = 1000
"""The number of repeated failures after which a replay attempts no more dead letters."""

DeadLetter = dict[str, Any]
"""A row of `engine.spool.DEAD_LETTER`."""


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
        self.query = Query("replay", "", (), (), ())
        self.failures: dict[str, RecordError] = {}

    def run(self, ids: Collection[str] | None, force: bool) -> ReplayResult:
        """Replays the dead letters with these IDs (None: all)."""
        result = ReplayResult()
        self.builder.types()
        interrupted = ReplayRecord.read(self.state)
        if interrupted is not None:
            result.finished = self._finish(interrupted)
        letters = self._select_replayable(self._letters(ids), force, result)
        valid = self._find_valid(letters)
        if valid:
            record = ReplayRecord.create(self.state, [letter["id"] for letter in valid])
            self._complete(record, valid)
        self._store_failures(letters)
        result.replayed = len(valid)
        result.failed = len(letters) - len(valid)
        return result

    def _letters(self, ids: Collection[str] | None) -> list[DeadLetter]:
        letters: list[DeadLetter] = self.store.read().to_pylist()
        return [letter for letter in letters if ids is None or letter["id"] in ids]

    def _finish(self, record: ReplayRecord) -> int:
        """Finishes an interrupted replay. Returns the number of its remaining dead letters.

        Raises StateError if one of the dead letters fails, because a sink may contain its row.
        """
        letters = self._letters(record.ids)
        if not record.written:
            skipped = ReplayResult()
            replayable = self._select_replayable(letters, True, skipped)
            if skipped.skipped or len(self._find_valid(replayable)) < len(letters):
                raise self._unfinished_error(letters, skipped)
        self._complete(record, letters)
        return len(letters)

    def _complete(self, record: ReplayRecord, letters: Sequence[DeadLetter]) -> None:
        """Writes the rows unless they are written, and removes the dead letters."""
        if letters and not record.written:
            self._write(record.name, letters)
            record.mark_written(self.state)
        self.collector.collect(record.name, 0)
        self.store.remove(record.ids)
        record.remove(self.state)
        shutil.rmtree(self.state.spool / record.name, ignore_errors=True)

    def _unfinished_error(self, letters: Sequence[DeadLetter], skipped: ReplayResult) -> StateError:
        reasons = [f"{node.node}: {node.reason}" for node in skipped.skipped]
        reasons += [error.message for error in self.failures.values()]
        return StateError(
            f"cannot finish an interrupted replay of {plural(len(letters), 'dead letter')}: "
            f"{reasons[0]}",
            code="unfinished-replay",
            hint="Undo the change of the pipeline, or remove the dead letters that fail with "
            "penstock dead remove.",
        )

    def _select_replayable(
        self, letters: list[DeadLetter], force: bool, result: ReplayResult
    ) -> list[DeadLetter]:
        by_node: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            by_node.setdefault(letter["node"], []).append(letter)
        replayable = []
        for name, node_letters in by_node.items():
            reason = self._obstacle(name, node_letters[0]["stage"], force)
            if reason is None:
                replayable += node_letters
            else:
                result.skipped.append(SkippedNode(name, len(node_letters), reason))
        return replayable

    def _obstacle(self, name: str, stage: str, force: bool) -> str | None:
        """Returns the reason against a replay of a node's dead letters, or None."""
        node = self.plan.nodes.get(name)
        if stage == "output":
            return "the node computed these rows; correct the node and read its input again"
        kind = {"decode": "source", "transform": "transform", "sink": "sink"}[stage]
        if node is None or node.kind != kind:
            return "the pipeline no longer has this node"
        downstream = [self.plan.nodes[other] for other in self._downstream(name)]
        stateful = [other.name for other in (node, *downstream) if other.stateful]
        if stateful and not force:
            return (
                f"{', '.join(stateful)} between this node and its sinks has state that a replay "
                "cannot use; with --force only the replayed rows are computed"
            )
        return None

    def _downstream(self, name: str) -> list[str]:
        names: list[str] = []
        for node in self.plan.nodes.values():
            if any(input_ == name or input_ in names for input_ in node.inputs):
                names.append(node.name)
        return names

    def _find_valid(self, letters: list[DeadLetter]) -> list[DeadLetter]:
        """Returns the dead letters without errors up to all sinks; adds others to `failures`."""
        decoded = [letter for letter in letters if self._decodes(letter)]
        valid: list[DeadLetter] = []
        for start, stop, outcome in isolate(
            len(decoded), lambda a, b: self._attempt(decoded[a:b]), _to_record_error
        ):
            if isinstance(outcome, RecordError):
                self.failures[decoded[start]["id"]] = outcome
                if len(self.failures) >= MAX_FAILURES:
                    break
            else:
                valid += decoded[start:stop]
        return valid

    def _decodes(self, letter: DeadLetter) -> bool:
        node = self.plan.nodes[letter["node"]]
        if letter["stage"] != "decode":
            return True
        try:
            self._decode(node, letter)
        except RecordError as error:
            self.failures[letter["id"]] = error
            return False
        return True

    def _attempt(self, letters: Sequence[DeadLetter]) -> None:
        frames, entering = self._frames(letters)
        for sink in self._sinks(letters):
            frame = self._input(sink, frames, entering)
            frame.write.format("noop").mode("overwrite").save()

    def _sinks(self, letters: Sequence[DeadLetter]) -> list[Node]:
        starts = {letter["node"] for letter in letters}
        reached = starts | {name for start in starts for name in self._downstream(start)}
        return [node for node in self.plan.of("sink") if node.name in reached]

    def _frames(
        self, letters: Sequence[DeadLetter]
    ) -> tuple[dict[str, DataFrame], dict[str, list[DeadLetter]]]:
        entering: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            entering.setdefault(letter["node"], []).append(letter)
        frames: dict[str, DataFrame] = {}
        for node in self.plan.nodes.values():
            if node.kind == "source":
                frames[node.name] = self._source(node, entering.get(node.name, ()))
                frames[node.name].createOrReplaceTempView(node.name)
            elif node.kind == "transform":
                frames[node.name] = self._derive(node, frames, entering)
        return frames, entering

    def _source(self, node: Node, letters: Sequence[DeadLetter]) -> DataFrame:
        if node.static:
            return self.builder.read_static(node.name)
        columns = self.builder.make_source_task(node, self.query).rows
        decoded = [self._decode(node, letter) for letter in letters]
        frame = self._frame(pa.Table.from_batches(decoded, columns), columns)
        return add_event_time(frame, node.watermark) if node.computes_event_time else frame

    def _decode(self, node: Node, letter: DeadLetter) -> pa.RecordBatch:
        if letter["payload"] is None:
            raise DecodeError(letter["message"], code=letter["code"])
        task = self.builder.make_source_task(node, self.query)
        return task.decode_again(
            letter["payload"],
            letter["origin"],
            letter["position"],
            letter["header"],
            isolated=letter["code"] == CRASHED,
        )

    def _derive(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        entering: Mapping[str, Sequence[DeadLetter]],
    ) -> DataFrame:
        if node.name not in entering:
            return self.builder.derive(node, frames, self.query, self.session)
        name = self._stream_input(node)
        union = self._input(node, frames, entering)
        union.createOrReplaceTempView(name)
        try:
            inputs = {**frames, name: union}
            return self.builder.derive(node, inputs, self.query, self.session)
        finally:
            frames[name].createOrReplaceTempView(name)

    def _input(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        entering: Mapping[str, Sequence[DeadLetter]],
    ) -> DataFrame:
        """Returns the input of a transform or sink: the rows from upstream and its dead letters."""
        frame = frames[self._stream_input(node)]
        letters = entering.get(node.name)
        if not letters:
            return frame
        types = text_columns(frame.schema) if node.kind == "sink" else frame.schema
        columns = to_arrow(types)
        payloads = pa.array([letter["payload"] for letter in letters], pa.binary())
        decoded = self._json.decode(payloads, columns)
        for failure in decoded.failures:
            raise failure.error
        rows = self._frame(pa.Table.from_batches([decoded.rows]), columns)
        return frame.unionAll(
            rows if types == frame.schema else json_to_variants(rows, frame.schema)
        )

    def _stream_input(self, node: Node) -> str:
        streams = self.plan.streams
        return next(name for name in node.inputs if name in streams)

    @property
    def _json(self) -> Format[Any]:
        component = registry.find("format", "json")
        format_ = component(component.config_type())
        assert isinstance(format_, Format)
        return format_

    def _frame(self, rows: pa.Table, columns: pa.Schema) -> DataFrame:
        schema = to_spark(columns)
        data: Any = rows.cast(columns) if rows.num_rows else []
        return self.session.createDataFrame(data, schema)

    def _write(self, name: str, letters: Sequence[DeadLetter]) -> None:
        frames, entering = self._frames(letters)
        batch = BatchId(name, 0)
        directory = str(self.state.spool / name)
        batch_record = BatchRecordFile(self.state.spool / name, planned=0)
        self.collector.clear(name, 0)
        for sink in self._sinks(letters):
            attempt = 1 + max(letter["attempt"] for letter in letters)
            spool = Spool(
                self.plan.name, name, sink.name, "sink", sink.on_error, directory,
                attempt=attempt,
            )  # fmt: skip
            task = make_sink_task(sink, spool)
            rows = self._input(sink, frames, entering)
            current = partitioning_of(sink.sink, rows, sink.removed_operation)
            partitioning = batch_record.partitioning(batch, sink.name, current)
            receipts = write_rows(sink.sink, task, rows, batch, partitioning)
            sink.sink.commit(batch, receipts)

    def _store_failures(self, letters: Sequence[DeadLetter]) -> None:
        failed = [self._failed_again(row) for row in letters if row["id"] in self.failures]
        self.store.replace({letter["id"]: letter for letter in failed}, ())

    def _failed_again(self, letter: DeadLetter) -> DeadLetter:
        error = self.failures[letter["id"]]
        return {
            **letter,
            "attempt": letter["attempt"] + 1,
            "code": error.code,
            "message": error.message.removeprefix(f"{letter['node']}: "),
        }


def _to_record_error(error: Exception) -> RecordError:
    """Returns the error of a record in an exception of Spark. Raises any other `error`."""
    cause: PenstockError | None = data_error(error)
    if cause is None and isinstance(error, PySparkException):
        cause = decode(str(error))
    if isinstance(cause, RecordError):
        return cause
    raise error

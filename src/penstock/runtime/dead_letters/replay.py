"""Replay of dead letters from the nodes where they failed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from pyspark.sql import SparkSession

from penstock.core.error_codec import decode
from penstock.core.errors import PenstockError, RecordError, StateError
from penstock.core.text import plural
from penstock.engine.build import Builder
from penstock.engine.checkpoints.batch_record import BatchRecordFile
from penstock.engine.checks.column_types import column_types
from penstock.engine.failures.row_search import find_failing_rows
from penstock.engine.late.late_rows import CODE as LATE
from penstock.engine.row_checks.data_errors import SPARK_ERRORS, data_error
from penstock.engine.sinks.sink_rows import make_sink_task, partitioning_of, write_rows
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.plan.model import Plan
from penstock.plan.unnamed_nodes import UnnamedNodes
from penstock.runtime.dead_letters.replay_record import ReplayRecord, ReplayResult, SkippedNode
from penstock.runtime.dead_letters.replay_rows import DeadLetter, ReplayRows, late_query
from penstock.runtime.dead_letters.store import Collector, DeadLetters
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import BatchId, bisect_failures

MAX_FAILURES = 1000
"""The number of failures found by bisection after which a replay attempts no more dead letters."""


_MOVED = (
    "several statements of the script were changed, so the statement of this node is unknown; "
    "replay before you add statements that write the same table, or remove them for the replay"
)

_NO_PAYLOAD = (
    "the dead letters have no payload that can be decoded again; read the records again with "
    "penstock run FILE --fresh, which repeats all rows of the sources, or remove the dead letters "
    "with penstock dead remove"
)


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
        self.unnamed = UnnamedNodes(plan)
        self.failures: dict[str, RecordError] = {}
        self._queries = {query.name: query for query in plan.queries}

    def run(self, ids: Collection[str] | None, force: bool) -> ReplayResult:
        """Replays the dead letters with these IDs (None: all)."""
        result = ReplayResult()
        column_types(self.builder)
        interrupted = ReplayRecord.read(self.state)
        if interrupted is not None:
            result.finished = self._finish(interrupted)
        dead_letters = self._select_replayable(self._dead_letters(ids), force, result)
        valid = self._find_valid(dead_letters)
        if valid:
            record = ReplayRecord.create(self.state, [letter["id"] for letter in valid])
            self._complete(record, valid)
        self._store_failures(dead_letters)
        result.replayed = len(valid)
        result.failed = len(dead_letters) - len(valid)
        return result

    def _dead_letters(self, ids: Collection[str] | None) -> list[DeadLetter]:
        dead_letters: list[DeadLetter] = self.store.read().to_pylist()
        return [letter for letter in dead_letters if ids is None or letter["id"] in ids]

    def _finish(self, record: ReplayRecord) -> int:
        """Finishes an interrupted replay. Returns the number of its remaining dead letters.

        Raises StateError if one of the dead letters fails, because a sink may contain its row.
        """
        dead_letters = self._dead_letters(record.ids)
        if not record.written:
            skipped = ReplayResult()
            replayable = self._select_replayable(dead_letters, True, skipped)
            if skipped.skipped or len(self._find_valid(replayable)) < len(dead_letters):
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
        self, dead_letters: Sequence[DeadLetter], skipped: ReplayResult
    ) -> StateError:
        reasons = [f"{node.node}: {node.reason}" for node in skipped.skipped]
        reasons += [error.message for error in self.failures.values()]
        return StateError(
            f"cannot finish an interrupted replay of {plural(len(dead_letters), 'dead letter')}: "
            f"{reasons[0]}",
            code="unfinished-replay",
            hint="Undo the change of the pipeline, or remove the dead letters that fail with "
            "penstock dead remove.",
        )

    def _select_replayable(
        self, dead_letters: list[DeadLetter], force: bool, result: ReplayResult
    ) -> list[DeadLetter]:
        by_entry: dict[tuple[str, str, str | None], list[DeadLetter]] = {}
        for letter in with_payload(self._find_nodes(dead_letters, result), result):
            entry = letter["node"], letter["stage"], late_query(letter)
            by_entry.setdefault(entry, []).append(letter)
        replayable = []
        for (name, stage, query), entering in by_entry.items():
            reason = self._obstacle(name, stage, query, force)
            if reason is None:
                replayable += entering
            else:
                result.skipped.append(SkippedNode(name, len(entering), reason))
        return replayable

    def _find_nodes(
        self, dead_letters: list[DeadLetter], result: ReplayResult
    ) -> Iterator[DeadLetter]:
        """Yields letters with the present names of their nodes. The others are skipped."""
        lost: Counter[str] = Counter()
        entries = {(letter["node"], letter["definition"]) for letter in dead_letters}
        nodes = {entry: self.unnamed.find(*entry) for entry in entries}
        definitions = {node: self.unnamed.definition(node) for node in nodes.values() if node}
        for letter in dead_letters:
            node = nodes[letter["node"], letter["definition"]]
            if node is None:
                lost[letter["node"]] += 1
            else:
                yield {**letter, "node": node, "definition": definitions[node]}
        result.skipped += [SkippedNode(name, count, _MOVED) for name, count in lost.items()]

    def _obstacle(
        self, name: str, stage: str, name_of_query: str | None, force: bool
    ) -> str | None:
        """Returns the reason against a replay of a node's dead letters, or None.

        `name_of_query` is the query in which they are late rows, if they are.
        """
        node = self.plan.nodes.get(name)
        if stage == "output" and name_of_query is None:
            return "the node computed these rows; correct the node and read its input again"
        kinds = {"decode": ("source",), "transform": ("transform",), "sink": ("sink",)}
        if node is None or node.kind not in kinds.get(stage, ("source", "transform")):
            return "the pipeline no longer has this node"
        reached = set(self.rows.downstream(name))
        if name_of_query is not None:
            query = self._queries.get(name_of_query)
            if query is None or name not in query.stream_nodes:
                return f"the pipeline no longer has the query {name_of_query}"
            reached &= {*query.stream_nodes, *query.batch_nodes}
        downstream = [other for other in self.plan.nodes.values() if other.name in reached]
        stateful = [other.name for other in (node, *downstream) if other.stateful]
        if stateful and not force:
            return (
                f"{', '.join(stateful)} between this node and its sinks has state that a replay "
                "cannot use; with --force only the replayed rows are computed"
            )
        return None

    def _find_valid(self, dead_letters: list[DeadLetter]) -> list[DeadLetter]:
        """Returns the dead letters without errors up to all sinks; adds others to `failures`."""
        decoded = [letter for letter in dead_letters if self._decodes(letter)]
        decoded = self._separate(decoded)
        found = len(self.failures)
        valid: list[DeadLetter] = []
        for start, stop, outcome in bisect_failures(
            len(decoded), lambda a, b: self._attempt(decoded[a:b]), _to_record_error
        ):
            if isinstance(outcome, RecordError):
                self.failures[decoded[start]["id"]] = outcome
                if len(self.failures) - found >= MAX_FAILURES:
                    break
            else:
                valid += decoded[start:stop]
        return valid

    def _separate(self, dead_letters: list[DeadLetter]) -> list[DeadLetter]:
        """Returns the dead letters on whose rows SQL does not fail, as far as one pass finds them.

        Adds the others to `failures`. Late rows are not separated.
        """
        for name in dict.fromkeys(letter["node"] for letter in dead_letters):
            group = [each for each in dead_letters if each["node"] == name and not late_query(each)]
            if self.plan.nodes[name].kind == "sink" or not group:
                continue
            try:
                inputs = [rows for _, rows in self.rows.sink_rows(group)]
            except RecordError:
                continue
            errors = find_failing_rows(inputs, self.rows.entries[name])
            owners = self._owners(group) if errors else []
            for row in sorted(errors):
                self.failures.setdefault(group[owners[row]]["id"], errors[row])
        return [letter for letter in dead_letters if letter["id"] not in self.failures]

    def _owners(self, group: Sequence[DeadLetter]) -> list[int]:
        """Returns the index of the dead letter of each row that enters a node."""
        node = self.plan.nodes[group[0]["node"]]
        if node.kind != "source":
            return list(range(len(group)))
        counts = (self.rows.decode(node, letter).num_rows for letter in group)
        return [index for index, count in enumerate(counts) for _ in range(count)]

    def _decodes(self, letter: DeadLetter) -> bool:
        node = self.plan.nodes[letter["node"]]
        if letter["stage"] != "decode":
            return True
        try:
            self.rows.decode(node, letter)
        except RecordError as error:
            self.failures[letter["id"]] = error
            return False
        return True

    def _attempt(self, dead_letters: Sequence[DeadLetter]) -> None:
        for _, rows in self.rows.sink_rows(dead_letters):
            rows.write.format("noop").mode("overwrite").save()

    def _write(self, name: str, dead_letters: Sequence[DeadLetter]) -> None:
        batch = BatchId(name, 0)
        directory = str(self.state.spool / name)
        batch_record = BatchRecordFile(self.state.spool / name, planned=0)
        self.collector.clear(name, 0)
        for sink, rows in self.rows.sink_rows(dead_letters):
            attempt = 1 + max(letter["attempt"] for letter in dead_letters)
            spool = Spool(
                self.plan.name, name, sink.name, "sink", sink.on_error, directory,
                attempt=attempt,
            )  # fmt: skip
            task = make_sink_task(sink, spool)
            current = partitioning_of(sink.sink, rows, sink.removed_operation)
            partitioning = batch_record.partitioning(batch, sink.name, current)
            receipts = write_rows(sink.sink, task, rows, batch, partitioning)
            sink.sink.commit(batch, receipts)

    def _store_failures(self, dead_letters: Sequence[DeadLetter]) -> None:
        failed = [self._failed_again(row) for row in dead_letters if row["id"] in self.failures]
        self.store.replace({letter["id"]: letter for letter in failed}, ())

    def _failed_again(self, letter: DeadLetter) -> DeadLetter:
        error = self.failures[letter["id"]]
        return {
            **letter,
            "attempt": letter["attempt"] + 1,
            "code": LATE if letter["code"] == LATE else error.code,
            "message": error.reason.removeprefix(f"{letter['node']}: "),
        }


def with_payload(dead_letters: Iterable[DeadLetter], result: ReplayResult) -> Iterator[DeadLetter]:
    """Yields the letters that have a payload for their stage. The others are skipped.

    A decoded row that a source has rejected is in its letter as JSON, which has no origin and may
    lack the columns that no query uses.
    """
    skipped: Counter[str] = Counter()
    for letter in dead_letters:
        if letter["payload"] is None or (letter["stage"] == "decode" and letter["origin"] is None):
            skipped[letter["node"]] += 1
        else:
            yield letter
    result.skipped += [SkippedNode(name, count, _NO_PAYLOAD) for name, count in skipped.items()]


def _to_record_error(error: Exception) -> RecordError:
    """Returns the error of a record in an exception of Spark. Raises any other `error`."""
    cause: PenstockError | None = data_error(error)
    if cause is None and isinstance(error, SPARK_ERRORS):
        cause = decode(str(error))
    if isinstance(cause, RecordError):
        return cause
    raise error

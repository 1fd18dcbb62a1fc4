"""Dead letters once more: each enters at the node where it failed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import DecodeError, PenstockError, RecordError, decode
from penstock.engine.batch import task_of, write_rows
from penstock.engine.bisect import data_error
from penstock.engine.build import Builder
from penstock.engine.columns import to_arrow, to_spark
from penstock.engine.spool import Spool
from penstock.plan.model import Node, Plan, Query
from penstock.runtime.dead_letters import Collector, DeadLetters
from penstock.runtime.state import StateDirectory
from penstock.sdk import BatchId, Format, isolate, registry

MOST_FAILURES = 1000
"""After this many that fail again, the rest are left alone."""

Letter = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """Dead letters of a node that are not replayed."""

    node: str
    count: int
    why: str


@dataclass
class Replayed:
    """`sent` letters are gone: their rows are in all sinks below. `failed` ones failed again and
    stay, with one more attempt. `refused` ones were not tried."""

    sent: int = 0
    failed: int = 0
    refused: list[Refusal] = field(default_factory=list)


class Replay:
    """Replays dead letters of the state directory in one batch.

    The state's lock must be held. A crash before the end leaves the letters where they are, and
    the same selection again is the same batch, so sinks that write exactly once do so here too.
    """

    def __init__(self, plan: Plan, session: SparkSession, state: StateDirectory) -> None:
        self.plan, self.session, self.state = plan, session, state
        self.store = DeadLetters(state.dead_letters)
        self.collector = Collector(plan, state)
        self.name = "replay"
        self.builder = Builder(plan, session)
        self.query = Query("replay", "", (), (), ())
        self.failures: dict[str, RecordError] = {}

    def run(self, ids: Collection[str] | None, force: bool) -> Replayed:
        """Replays the letters with these ids (None: all)."""
        result = Replayed()
        letters = [
            each for each in self.store.read().to_pylist() if ids is None or each["id"] in ids
        ]
        letters = self._allowed(letters, force, result)
        self.builder.types()
        good = self._sound(letters)
        if good:
            self._send(good)
        gone = {each["id"] for each in good}
        self._settle(letters, gone)
        result.sent = len(gone)
        result.failed = len(letters) - len(gone)
        return result

    def _allowed(self, letters: list[Letter], force: bool, result: Replayed) -> list[Letter]:
        by_node: dict[str, list[Letter]] = {}
        for letter in letters:
            by_node.setdefault(letter["node"], []).append(letter)
        allowed = []
        for name, some in by_node.items():
            why = self._obstacle(name, some[0]["stage"], force)
            if why is None:
                allowed += some
            else:
                result.refused.append(Refusal(name, len(some), why))
        return allowed

    def _obstacle(self, name: str, stage: str, force: bool) -> str | None:
        node = self.plan.nodes.get(name)
        kind = {"decode": "source", "transform": "transform", "sink": "sink"}[stage]
        if node is None or node.kind != kind:
            return "the pipeline has no such node now"
        below = [self.plan.nodes[each] for each in self._below(name)]
        stateful = [each.name for each in (node, *below) if each.stateful]
        if stateful and not force:
            return (
                f"the way to its sinks leads through {', '.join(stateful)}, which remembers rows "
                "of the run; with --force it is computed from the replayed rows alone"
            )
        return None

    def _below(self, name: str) -> list[str]:
        found: list[str] = []
        for node in self.plan.nodes.values():
            if any(above == name or above in found for above in node.inputs):
                found.append(node.name)
        return found

    # Which letters are good now

    def _sound(self, letters: list[Letter]) -> list[Letter]:
        """The letters of which every row reaches its sinks; the others are in `failures`."""
        ready = [each for each in letters if self._readable(each)]
        good: list[Letter] = []
        for start, stop, found in isolate(
            len(ready), lambda a, b: self._attempt(ready[a:b]), _blame
        ):
            if isinstance(found, RecordError):
                self.failures[ready[start]["id"]] = found
                if len(self.failures) >= MOST_FAILURES:
                    break
            else:
                good += ready[start:stop]
        return good

    def _readable(self, letter: Letter) -> bool:
        node = self.plan.nodes[letter["node"]]
        if letter["stage"] != "decode":
            return True
        try:
            self._decoded(node, letter)
        except RecordError as error:
            self.failures[letter["id"]] = error
            return False
        return True

    def _attempt(self, letters: Sequence[Letter]) -> None:
        frames, entering = self._frames(letters)
        for sink in self._sinks(letters):
            frame = self._input(sink, frames, entering)
            frame.write.format("noop").mode("overwrite").save()

    def _sinks(self, letters: Sequence[Letter]) -> list[Node]:
        starts = {each["node"] for each in letters}
        reached = starts | {name for start in starts for name in self._below(start)}
        return [node for node in self.plan.of("sink") if node.name in reached]

    # The rows of letters, and what becomes of them

    def _frames(
        self, letters: Sequence[Letter]
    ) -> tuple[dict[str, DataFrame], dict[str, list[Letter]]]:
        entering: dict[str, list[Letter]] = {}
        for letter in letters:
            entering.setdefault(letter["node"], []).append(letter)
        frames: dict[str, DataFrame] = {}
        for node in self.plan.nodes.values():
            if node.kind == "source":
                frames[node.name] = self._source(node, entering.get(node.name, ()))
                frames[node.name].createOrReplaceTempView(node.name)
            elif node.kind == "transform":
                frames[node.name] = self._derived(node, frames, entering)
        return frames, entering

    def _source(self, node: Node, letters: Sequence[Letter]) -> DataFrame:
        if node.static:
            return self.builder.static(node.name)
        columns = self.builder.task(node, self.query).rows
        decoded = [self._decoded(node, each) for each in letters]
        return self._frame(pa.Table.from_batches(decoded, columns), columns)

    def _decoded(self, node: Node, letter: Letter) -> pa.RecordBatch:
        if letter["payload"] is None:
            raise DecodeError(letter["message"], code=letter["code"])
        task = self.builder.task(node, self.query)
        return task.again(letter["payload"], letter["origin"], letter["position"])

    def _derived(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        entering: Mapping[str, Sequence[Letter]],
    ) -> DataFrame:
        if node.name not in entering:
            return self.builder.derived(node, frames, self.query, self.session)
        above = self._stream_above(node)
        joined = self._input(node, frames, entering)
        joined.createOrReplaceTempView(above)
        try:
            given = {**frames, above: joined}
            return self.builder.derived(node, given, self.query, self.session)
        finally:
            frames[above].createOrReplaceTempView(above)

    def _input(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        entering: Mapping[str, Sequence[Letter]],
    ) -> DataFrame:
        """What a transform or sink reads: what comes from above, and its own letters."""
        frame = frames[self._stream_above(node)]
        letters = entering.get(node.name)
        if not letters:
            return frame
        columns = to_arrow(frame.schema)
        payloads = pa.array([each["payload"] for each in letters], pa.binary())
        decoded = self._json.decode(payloads, columns)
        for failure in decoded.failures:
            raise failure.error
        return frame.unionAll(self._frame(pa.Table.from_batches([decoded.rows]), columns))

    def _stream_above(self, node: Node) -> str:
        streams = self.plan.streams
        return next(name for name in node.inputs if name in streams)

    @property
    def _json(self) -> Format[Any]:
        found = registry.find("format", "json")
        form = found(found.config_type())
        assert isinstance(form, Format)
        return form

    def _frame(self, rows: pa.Table, columns: pa.Schema) -> DataFrame:
        schema = to_spark(columns)
        given: Any = rows.cast(columns) if rows.num_rows else []
        return self.session.createDataFrame(given, schema)

    # Writing, and what is left

    def _send(self, letters: Sequence[Letter]) -> None:
        frames, entering = self._frames(letters)
        identity = hashlib.sha1("".join(sorted(each["id"] for each in letters)).encode())
        self.name = f"replay-{identity.hexdigest()[:12]}"
        batch = BatchId(self.name, 0)
        directory = str(self.state.spool / self.name)
        self.collector.clear(self.name, 0)
        for sink in self._sinks(letters):
            attempt = 1 + max(each["attempt"] for each in letters)
            spool = Spool(
                self.plan.name, self.name, sink.name, "sink", sink.on_error, directory,
                attempt=attempt,
            )  # fmt: skip
            task = task_of(sink, spool)
            receipts = write_rows(sink.sink, task, self._input(sink, frames, entering), batch)
            sink.sink.finish(batch, receipts)

    def _settle(self, letters: Sequence[Letter], gone: set[str]) -> None:
        """Letters that were sent go; those that failed again say so; new ones are kept."""
        self.collector.collect(self.name, 0)
        again = [self._once_more(each) for each in letters if each["id"] in self.failures]
        self.store.replace({each["id"]: each for each in again}, gone)

    def _once_more(self, letter: Letter) -> Letter:
        error = self.failures[letter["id"]]
        return {
            **letter,
            "attempt": letter["attempt"] + 1,
            "code": error.code,
            "message": error.message.removeprefix(f"{letter['node']}: "),
        }


def _blame(error: Exception) -> RecordError:
    """The record's error that came back from Spark. Raises `error` if it is none."""
    found: PenstockError | None = data_error(error)
    if found is None and isinstance(error, PySparkException):
        found = decode(str(error))
    if isinstance(found, RecordError):
        return found
    raise error


__all__ = ["Refusal", "Replay", "Replayed"]

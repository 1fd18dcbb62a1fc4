"""Rows of a replay: dead letters in the nodes where they failed, and the rows downstream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.engine.build import Builder
from penstock.engine.catalyst.columns import sink_schema, text_columns, to_arrow, to_spark
from penstock.engine.catalyst.variants import json_to_variants, mark_variants
from penstock.engine.catalyst.views import create_view
from penstock.engine.late.late_rows import CODE as LATE
from penstock.engine.sources.source_tasks import make_source_task
from penstock.engine.watermarks.watermark import add_event_time
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.runtime.dead_letters.dead_letter import DeadLetter
from penstock.sdk import Format, registry
from penstock.sdk.columns.escaped_bytes import hide_bytes, restore_bytes
from penstock.sdk.forked import CRASHED


class ReplayRows:
    """The rows of dead letters in the nodes of a plan.

    `entries` are the input of each node where dead letters enter, of a source its rows, as the last
    call of `sink_rows` has built them.
    """

    def __init__(self, plan: Plan, session: SparkSession, builder: Builder) -> None:
        self.plan, self.session, self.builder = plan, session, builder
        self.query = Query("replay", "", (), (), ())
        self.entries: dict[str, DataFrame] = {}

    def sink_rows(self, dead_letters: Sequence[DeadLetter]) -> Iterator[tuple[Node, DataFrame]]:
        """Yields the sinks downstream of the dead letters, and their rows.

        Late rows reach only the sinks of the query that has dropped them.
        """
        built: dict[str | None, tuple[dict[str, DataFrame], dict[str, list[DeadLetter]]]] = {}
        late_queries = {late_query(letter) for letter in dead_letters}
        sink_queries = {name: query.name for query in self.plan.queries for name in query.sinks}
        for sink in self.plan.of("sink"):
            query = sink_queries[sink.name] if sink_queries[sink.name] in late_queries else None
            entering = [letter for letter in dead_letters if late_query(letter) in (None, query)]
            starts = {letter.node for letter in entering}
            reached = starts | {name for start in starts for name in downstream(self.plan, start)}
            if sink.name in reached:
                if query not in built:
                    built[query] = self._frames(entering)
                yield sink, self._input(sink, *built[query])

    def _frames(
        self, dead_letters: Sequence[DeadLetter]
    ) -> tuple[dict[str, DataFrame], dict[str, list[DeadLetter]]]:
        entering: dict[str, list[DeadLetter]] = {}
        outputs: dict[str, list[DeadLetter]] = {}
        for letter in dead_letters:
            destination = outputs if letter.stage == "output" else entering
            destination.setdefault(letter.node, []).append(letter)
        frames: dict[str, DataFrame] = {}
        for node in self.plan.nodes.values():
            if node.kind == "source":
                frames[node.name] = self._source(node, entering.get(node.name, ()))
                create_view(frames[node.name], node.name)
            elif node.kind == "transform":
                frames[node.name] = self._derive(node, frames, entering)
            if node.name in outputs:
                frames[node.name] = self._add(outputs[node.name], frames[node.name])
                create_view(frames[node.name], node.name)
        return frames, entering

    def _source(self, node: Node, dead_letters: Sequence[DeadLetter]) -> DataFrame:
        if node.static:
            return self.builder.read_static(node.name)
        columns = make_source_task(self.builder, node, self.query).rows
        decoded = [self.decode(node, letter) for letter in dead_letters]
        frame = self._frame(pa.Table.from_batches(decoded, columns), columns)
        self.entries[node.name] = frame
        frame = mark_variants(frame, columns)
        return add_event_time(frame, node.watermark) if node.computes_event_time else frame

    def decode(self, node: Node, letter: DeadLetter) -> pa.RecordBatch:
        """Returns the rows of a dead letter of a source that has a payload. Raises RecordError."""
        task = make_source_task(self.builder, node, self.query)
        payload, origin, position = letter.payload, letter.origin, letter.position
        assert payload is not None and origin is not None and position is not None
        isolated = letter.code == CRASHED
        return task.decode_again(payload, origin, position, letter.header, isolated=isolated)

    def _derive(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        entering: Mapping[str, Sequence[DeadLetter]],
    ) -> DataFrame:
        if node.name not in entering:
            return self.builder.derive(node, frames, self.query, self.session)
        name = self._stream_input(node)
        union = self.entries[node.name] = self._input(node, frames, entering)
        create_view(union, name)
        try:
            inputs = {**frames, name: union}
            return self.builder.derive(node, inputs, self.query, self.session)
        finally:
            create_view(frames[name], name)

    def _input(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        entering: Mapping[str, Sequence[DeadLetter]],
    ) -> DataFrame:
        """Returns the input of a transform or sink: the rows from upstream and its dead letters."""
        frame = frames[self._stream_input(node)]
        dead_letters = entering.get(node.name)
        if not dead_letters:
            return frame
        as_text = node.kind == "sink" or node.batch_function is not None
        return self._add(dead_letters, frame, as_text=as_text)

    def _add(
        self, dead_letters: Sequence[DeadLetter], frame: DataFrame, as_text: bool = False
    ) -> DataFrame:
        """Returns rows with those of dead letters. `as_text`: with VARIANT as text."""
        types = text_columns(frame.schema) if as_text else frame.schema
        columns = sink_schema(frame.schema) if as_text else to_arrow(types)
        payloads = [letter.payload for letter in dead_letters]
        hidden = hide_bytes(payloads)
        decoded = self._json.decode(pa.array(hidden, pa.binary()), columns)
        for failure in decoded.failures:
            raise failure.error
        restored = decoded.rows if hidden == payloads else restore_bytes(decoded.rows)
        rows = self._frame(pa.Table.from_batches([restored]), columns)
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


def downstream(plan: Plan, name: str) -> list[str]:
    """Returns the names of all nodes downstream of a node."""
    names: list[str] = []
    for node in plan.nodes.values():
        if any(input_ == name or input_ in names for input_ in node.inputs):
            names.append(node.name)
    return names


def late_query(letter: DeadLetter) -> str | None:
    """Returns the query that has dropped a row because it was late; None for a bad record."""
    return letter.query if letter.code == LATE else None

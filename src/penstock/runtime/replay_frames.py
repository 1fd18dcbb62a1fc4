"""Frames of a replay: the rows of dead letters, from the nodes where they failed to the sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.core.errors import DecodeError
from penstock.engine.build import Builder
from penstock.engine.columns import sink_schema, text_columns, to_arrow, to_spark
from penstock.engine.variants import json_to_variants, mark_variants
from penstock.engine.watermark import add_event_time
from penstock.plan.model import Node, Query
from penstock.sdk import Format, registry
from penstock.sdk.forked import CRASHED

DeadLetter = dict[str, Any]
"""A row of `engine.spool.DEAD_LETTER`."""


class ReplayFrames:
    """The DataFrames of a plan whose only rows are those of dead letters.

    `entries` are the input of each node where dead letters enter; of a source its rows.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.query = Query("replay", "", (), (), ())
        self.entries: dict[str, DataFrame] = {}

    def build(
        self, letters: Sequence[DeadLetter]
    ) -> tuple[dict[str, DataFrame], dict[str, list[DeadLetter]]]:
        """Returns the frames of all nodes, and the dead letters by the node where they enter."""
        entering: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            entering.setdefault(letter["node"], []).append(letter)
        frames: dict[str, DataFrame] = {}
        for node in self.builder.plan.nodes.values():
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
        decoded = [self.decode(node, letter) for letter in letters]
        frame = self._frame(pa.Table.from_batches(decoded, columns), columns)
        self.entries[node.name] = frame
        frame = mark_variants(frame, columns)
        return add_event_time(frame, node.watermark) if node.computes_event_time else frame

    def decode(self, node: Node, letter: DeadLetter) -> pa.RecordBatch:
        """Returns the rows of a dead letter of a source. Raises RecordError."""
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
            return self.builder.derive(node, frames, self.query, self.builder.session)
        name = self._stream_input(node)
        union = self.entries[node.name] = self.input(node, frames, entering)
        union.createOrReplaceTempView(name)
        try:
            inputs = {**frames, name: union}
            return self.builder.derive(node, inputs, self.query, self.builder.session)
        finally:
            frames[name].createOrReplaceTempView(name)

    def input(
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
        as_text = node.kind == "sink" or node.batch_function is not None
        types = text_columns(frame.schema) if as_text else frame.schema
        columns = sink_schema(frame.schema) if as_text else to_arrow(types)
        payloads = pa.array([letter["payload"] for letter in letters], pa.binary())
        decoded = self._json.decode(payloads, columns)
        for failure in decoded.failures:
            raise failure.error
        rows = self._frame(pa.Table.from_batches([decoded.rows]), columns)
        return frame.unionAll(
            rows if types == frame.schema else json_to_variants(rows, frame.schema)
        )

    def _stream_input(self, node: Node) -> str:
        streams = self.builder.plan.streams
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
        return self.builder.session.createDataFrame(data, schema)

"""DataFrames of a plan: streaming for the stream nodes of a query, batch for the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from penstock.core.errors import PenstockError
from penstock.engine.analysis.errors import (
    collect_errors,
    locate_constant_errors,
    locate_errors,
    sql_texts,
)
from penstock.engine.catalyst.columns import to_spark
from penstock.engine.catalyst.variants import mark_variants
from penstock.engine.catalyst.views import create_view
from penstock.engine.checkpoints.stream_state import has_timed_windows
from penstock.engine.derivation import Derivation, Derive
from penstock.engine.late.late_search import late_capture
from penstock.engine.row_checks.read_columns import has_stream_join, with_columns_read
from penstock.engine.row_checks.result_rows import ResultRows
from penstock.engine.row_checks.stream_checks import check_joins, check_node, is_checkable, stage_of
from penstock.engine.row_checks.stream_joins import joins_streams
from penstock.engine.sources.datasource import NAME, TASK, PenstockDataSource
from penstock.engine.sources.merged import divide, merge
from penstock.engine.sources.pushdown import NODE, find_pushdowns, without_lost_changes
from penstock.engine.sources.source import SourceTask
from penstock.engine.sources.source_tasks import make_source_task
from penstock.engine.sources.stream_tasks import is_executable, with_tasks
from penstock.engine.tables import TableReader
from penstock.engine.watermarks.computed_event_time import add_computed_watermark
from penstock.engine.watermarks.partition_watermarks import partition_idle_time
from penstock.engine.watermarks.watermark import (
    add_event_time,
    add_watermark,
    check_event_time_column,
    watermark_id,
)
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.plan.queries import end_nodes
from penstock.spec.node_models import SourceSpec, Watermark
from penstock.sql.determinism import reads_clock


@dataclass
class Builder(TableReader, Derivation):
    """The builder of the DataFrames of one plan in one session.

    `build_streams` returns the streams of a query up to its root, and `build_batch` the frames
    downstream for one batch of the root.
    """

    watermark_ids: dict[str, str] = field(default_factory=dict)
    """The IDs in Spark of the watermarks of nodes, in the streams that were built last."""
    computed_watermarks: dict[str, str] = field(default_factory=dict)
    """The nodes of watermarks on computed columns, by the ID of the watermark in Spark."""
    unchecked: dict[str, Mapping[str, DataFrame]] = field(default_factory=dict)
    """The streams without checks of the queries that have started."""
    shared: Mapping[str, DataFrame] = field(default_factory=dict)
    """Streams without checks, not executed, whose parts are also parts of streams with checks."""
    results: dict[str, ResultRows] = field(default_factory=dict)
    """The rows of groups that are checked in streams, by the names of `FailingRows`."""

    def build_streams(self, query: Query) -> dict[str, DataFrame]:
        """Returns the DataFrames of the stream nodes of `query`, the root last."""
        frames: dict[str, DataFrame] = {}
        pushdowns: Mapping[str, Pushdown] = {}
        if not self.sentinel_only and not self.with_sentinel:
            typed, is_known = self._typed(query)
            pushdowns = self._pushdowns(query, typed)
            if is_executable(self._stream_nodes(query), typed, is_known=is_known):
                frames = self._executed(query, typed, pushdowns)
        for name in (*self._static_above(query), *query.stream_nodes):
            if name not in frames:
                pushdown = pushdowns.get(name, EVERYTHING)
                frames[name] = self._frame(self.plan.nodes[name], frames, query, pushdown)
        if query.merged:
            frames[query.root] = merge({name: frames[name] for name in query.merged})
        return frames

    def _executed(
        self, query: Query, typed: Mapping[str, DataFrame], pushdowns: Mapping[str, Pushdown]
    ) -> dict[str, DataFrame]:
        """Returns typed frames as streams, whose sources have tasks with their pushdown."""
        self._register_source()
        nodes = self._stream_nodes(query)
        sources = [node for node in nodes if node.kind == "source"]
        for node in sources:
            if node.watermark is not None and not node.computes_event_time:
                self.watermark_ids[node.name] = watermark_id(typed[node.name])
        tasks = {
            node.name: self._source_task(node, query, pushdowns.get(node.name, EVERYTHING)).pack()
            for node in sources
        }
        return {node.name: with_tasks(typed[node.name], tasks) for node in nodes}

    def pushdowns(self, query: Query) -> dict[str, Pushdown]:
        """Returns the pushdown of `query` for each of its sources. Reads no data."""
        return self._pushdowns(query, self._typed(query)[0])

    def _typed(self, query: Query) -> tuple[Mapping[str, DataFrame], bool]:
        """Returns the typed frames of a query, and whether they were known.

        There are none if all rows of a source are used.
        """
        nodes = self.plan.nodes
        if any(nodes[name].kind == "source" for name in end_nodes(query, nodes)):
            return {}, False
        typed = self.analysis.typed.pop(query.name, None)
        if typed and not self.checks_rows and has_timed_windows(self.checkpoint):
            return typed, True
        return self.typed_frames(query, {}), False

    def _pushdowns(self, query: Query, frames: Mapping[str, DataFrame]) -> dict[str, Pushdown]:
        """Returns the pushdown of `query` for each of its sources, given its typed frames."""
        nodes = self.plan.nodes
        ends = end_nodes(query, nodes)
        computed = [frame for name, frame in frames.items() if name in self.plan.streams]
        if not all(name in frames for name in ends) or not all(f.isStreaming for f in computed):
            return {}
        members = [nodes[name] for name in (*query.stream_nodes, *query.batch_nodes)]
        with locate_constant_errors(self.plan, members):
            pushdowns = find_pushdowns(frames[name] for name in ends)
        has_clock = any(reads_clock(sql.text) for node in members for sql in sql_texts(node))
        return {
            name: without_lost_changes(nodes[name], query, pushdown, has_clock=has_clock)
            for name, pushdown in pushdowns.items()
        }

    def build_batch(
        self, query: Query, root: DataFrame, derive: Derive | None = None
    ) -> dict[str, DataFrame]:
        """Returns the DataFrames of the batch nodes of `query` for one batch of the root.

        `derive` takes the place of the method of the same name.
        """
        session = root.sparkSession
        frames = {name: self.read_table(name, query) for name in self._static_above(query)}
        frames[query.root] = root
        starts = {name: divide(root, name) for name in query.merged} or {query.root: root}
        for name, start in starts.items():
            frames[name] = start
            create_view(start, name)
        for name in query.batch_nodes:
            if name not in frames:
                frames[name] = (derive or self.derive)(
                    self.plan.nodes[name], frames, query, session
                )
        return frames

    def output(self, node: Node, input_: DataFrame, query: Query) -> DataFrame:
        """Returns the output of a node with one stream for rows of that input, in their session.

        The input of a source are its rows before the event time is computed.
        """
        if node.kind == "source":
            return add_event_time(input_, node.watermark)
        frames = {}
        for name in node.inputs:
            static = self.plan.nodes[name].static
            frames[name] = self.read_table(name, query) if static else input_
            create_view(frames[name], name)
        return self.derive(node, frames, query, input_.sparkSession)

    def typed_frames(self, query: Query, errors: dict[str, PenstockError]) -> dict[str, DataFrame]:
        """Returns the frames of a query without rows. Adds the errors of nodes to `errors`."""
        frames: dict[str, DataFrame] = {}
        for name in dict.fromkeys(
            (*self._static_above(query), *query.stream_nodes, *query.batch_nodes)
        ):
            node = self.plan.nodes[name]
            if name not in errors and all(input_ in frames for input_ in node.inputs):
                with collect_errors(errors, name):
                    frames[name] = (
                        self.empty_table(node, query)
                        if node.static
                        else self._frame(node, frames, query)
                    )
        return frames

    def _frame(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        query: Query,
        pushdown: Pushdown = EVERYTHING,
    ) -> DataFrame:
        shared = self._shared(node, frames)
        if node.kind == "transform":
            frame = self.derive(node, frames, query, self.session) if shared is None else shared
            frame = self._check_rows(node, frame, frames, query)
            watermark = node.watermark
            if watermark is not None:
                with locate_errors(self.plan, node):
                    check_event_time_column(node, frame.schema, watermark)
                    frame = self._computed_event_time(node, watermark, frame, frames, query)
                create_view(frame, node.name)
            return frame
        if shared is not None:
            frame = shared
        elif node.static:
            frame = self.read_table(node.name, query)
        else:
            frame = self._stream(node, query, pushdown)
        create_view(frame, node.name)
        return frame

    def _shared(self, node: Node, frames: Mapping[str, DataFrame]) -> DataFrame | None:
        """Returns the output of a node without checks, if it and its inputs are shared."""
        shared = all(frames[name] is self.shared.get(name) for name in node.inputs)
        return self.shared.get(node.name) if shared and not node.computes_event_time else None

    def can_check(self, node: Node, query: Query) -> bool:
        """Returns whether rows on which SQL of a node fails can leave the stream of a query."""
        return is_checkable(node, self.plan.streams, self.make_spool(node, query, stage_of(node)))

    def _check_rows(
        self, node: Node, frame: DataFrame, frames: Mapping[str, DataFrame], query: Query
    ) -> DataFrame:
        """Returns the output of a node, with `checks_rows` without the rows on which it fails."""
        if not self.checks_rows:
            return frame
        if not self.checks_joins and has_stream_join(frame):
            return frame
        if node.name in self.read_columns:
            frame = with_columns_read(frame, self.read_columns[node.name])
        if not self.can_check(node, query):
            create_view(frame, node.name)
            return frame
        names = (node.name, *node.inputs)
        inputs = [frames[n] for n in names if n in frames and n in self.plan.streams]
        spool = self.make_spool(node, query, stage_of(node))
        if joins_streams(frame, inputs):
            frame = check_joins(node, frame, inputs, spool, self.results)
        elif len(inputs) == 1:
            frame = check_node(node, frame, inputs[0], spool, self.results)
        create_view(frame, node.name)
        return frame

    def _source_task(self, node: Node, query: Query, pushdown: Pushdown) -> SourceTask:
        """Returns the task of reading a source as a stream."""
        if node.late == "dead_letter":
            # Dead letters have whole rows.
            pushdown = replace(pushdown, columns=None)
        return replace(
            make_source_task(self, node, query),
            pushdown=pushdown,
            null_unused_columns=self.plan.keeps_state(query) and node.late == "drop",
            late=None if node.computes_event_time else late_capture(self, node, query),
            partition_idle=partition_idle_time(node) if self.has_late_rows(query) else None,
        )

    def _register_source(self) -> None:
        """Registers the data source, once for each reader and each start."""
        # Spark changes a map of a registration while it sends the map to tasks.
        self.session.dataSource.register(PenstockDataSource)

    def _stream(self, node: Node, query: Query, pushdown: Pushdown) -> DataFrame:
        assert isinstance(node.spec, SourceSpec)
        with locate_errors(self.plan, node):
            task = self._source_task(node, query, pushdown)
            self._register_source()
            reader = self.session.readStream.format(NAME).schema(to_spark(task.rows))
            reader = reader.name(node.name).option(NODE, node.name)
            frame = mark_variants(reader.option(TASK, task.pack()).load(), task.rows)
            watermark = node.watermark
            if watermark is not None and watermark.expression is not None:
                self.register_functions(self.session)
                columns = add_event_time(frame, watermark).schema
                check_event_time_column(node, columns, watermark)
                raw, frame = {node.name: frame}, add_event_time(frame, watermark)
                frame = self._check_rows(node, frame, raw, query)
                frame = self._computed_event_time(node, watermark, frame, raw, query)
            elif watermark is not None:
                check_event_time_column(node, frame.schema, watermark)
                drops = self.sentinel_only or self.with_sentinel or self.plan.closes_windows_at_once
                frame = add_watermark(frame, watermark, drops_sentinel=drops)
                self.watermark_ids[node.name] = watermark_id(frame)
        return frame

    def _computed_event_time(
        self,
        node: Node,
        watermark: Watermark,
        frame: DataFrame,
        frames: Mapping[str, DataFrame],
        query: Query,
    ) -> DataFrame:
        frame = add_computed_watermark(self, node, watermark, frame, frames, query)
        if not self.sentinel_only:
            self.watermark_ids[node.name] = watermark_id(frame)
            self.computed_watermarks[self.watermark_ids[node.name]] = node.name
        return frame

    def _stream_nodes(self, query: Query) -> list[Node]:
        return [self.plan.nodes[name] for name in query.stream_nodes]

    def _static_above(self, query: Query) -> tuple[str, ...]:
        members = (*query.stream_nodes, *query.batch_nodes)
        return tuple(name for name in members if self.plan.nodes[name].static)

"""DataFrames of a plan: streaming for the stream nodes of a query, batch for the others."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.core.errors import PenstockError, PlanError, raise_all
from penstock.core.text import did_you_mean
from penstock.engine.analysis import (
    locate_constant_errors,
    locate_errors,
    semi_join_error,
    sql_texts,
    streaming_error,
)
from penstock.engine.arrow_map import map_in_arrow
from penstock.engine.column_checks import (
    check_duplicate_columns,
    check_operation,
    check_primary_key,
    check_sink_schema,
)
from penstock.engine.columns import exchange_schema, has_variant, sink_schema, to_spark
from penstock.engine.datasource import NAME, PenstockDataSource
from penstock.engine.distinct import by_distinct_values
from penstock.engine.event_time import LATEST
from penstock.engine.event_time_groups import by_windows_only
from penstock.engine.function import Chain, Step
from penstock.engine.functions.register import name_columns, register_functions
from penstock.engine.late_candidates import LateCapture
from penstock.engine.late_rows import STAGES, LateNode, LateRows, find_exact_paths
from penstock.engine.lookup_rows import apply_changes
from penstock.engine.lookup_table import LOOKUPS, LookupTask
from penstock.engine.merged import divide, merge
from penstock.engine.null_keys import by_known_keys
from penstock.engine.partition_watermarks import (
    PartitionedSource,
    PartitionWatermarks,
    partition_idle_time,
)
from penstock.engine.past_watermarks import PastWatermarks
from penstock.engine.pushdown import NODE, find_pushdowns
from penstock.engine.sentinel import END_OF_TIME
from penstock.engine.source import SourceTask
from penstock.engine.source_readers import read_all
from penstock.engine.spark_plan import (
    analyzed_plan,
    class_name,
    scala_items,
    streaming_operators,
)
from penstock.engine.spool import Spool, Stage
from penstock.engine.stream_checks import check_node, is_checkable, stage_of
from penstock.engine.updating.batch import UpdatingBatch
from penstock.engine.updating.changelog import as_inserts
from penstock.engine.updating.template import table_of
from penstock.engine.variants import mark_variants, variants_to_json
from penstock.engine.verification import check_decisions
from penstock.engine.watermark import (
    add_event_time,
    add_watermark,
    check_event_time_column,
    check_event_times,
    sentinel_rows,
    watermark_id,
)
from penstock.engine.window_bounds import by_whole_windows
from penstock.plan.lookups import lookup_operation, table_columns
from penstock.plan.model import Node, Plan, Query
from penstock.plan.pushdown import EVERYTHING, Pushdown
from penstock.plan.queries import end_nodes, stream_sources, unread_queries
from penstock.sdk import Capability, ReplayableSource
from penstock.spec.models import Lookup, SourceSpec, Watermark
from penstock.sql.facts import reads_clock

Derive = Callable[[Node, Mapping[str, DataFrame], Query, SparkSession], DataFrame]
"""A function that returns the output of a transform (see `Builder.derive`)."""


@dataclass
class Builder:
    """The builder of the DataFrames of one plan in one session.

    `spool` is the directory of the dead letter files; None makes a bad record an error. With
    `sentinel_only` the sources return only the row that closes all windows; with `with_sentinel`
    the sources append the sentinel row themselves. Without `report_dead_letters` bad records are
    dropped silently. With `checks_rows` rows on which SQL fails leave a stream before its stateful
    operators. `recomputed_for` is a parameter of the spools. Workers keep transforms open
    between the batches of a `run_id`. With the `checkpoint` of a query its streams record their
    start offsets, and the late rows of its batches can be found. Static tables are read once.
    Without `updating` the rows of updating transforms are those of a table, as inserts.
    """

    plan: Plan
    session: SparkSession
    spool: Path | None = None
    sentinel_only: bool = False
    with_sentinel: bool = False
    report_dead_letters: bool = True
    checks_rows: bool = False
    recomputed_for: str = ""
    checkpoint: Path | None = None
    updating: UpdatingBatch | None = None
    run_id: str = field(default_factory=lambda: uuid4().hex)
    _static: dict[str, DataFrame] = field(default_factory=dict)
    _lookups: dict[tuple[Path, str], DataFrame] = field(default_factory=dict)
    _watermarks: dict[str, str] = field(default_factory=dict)
    watermark_ids: dict[str, str] = field(default_factory=dict)
    """The IDs in Spark of the watermarks of nodes, in the streams that were built last."""
    _verified: set[str] = field(default_factory=set)
    _registered: set[object] = field(default_factory=set)

    def build_streams(self, query: Query) -> dict[str, DataFrame]:
        """Returns the DataFrames of the stream nodes of `query`, the root last."""
        frames: dict[str, DataFrame] = {}
        pushdowns = {} if self.sentinel_only or self.with_sentinel else self.pushdowns(query)
        for name in (*self._static_above(query), *query.stream_nodes):
            if name not in frames:
                pushdown = pushdowns.get(name, EVERYTHING)
                frames[name] = self._frame(self.plan.nodes[name], frames, query, pushdown)
        if query.merged:
            frames[query.root] = merge({name: frames[name] for name in query.merged})
        return frames

    def pushdowns(self, query: Query) -> dict[str, Pushdown]:
        """Returns the pushdown of `query` for each of its sources. Reads no data."""
        nodes = self.plan.nodes
        ends = end_nodes(query, nodes)
        frames = (
            {} if any(nodes[n].kind == "source" for n in ends) else self._typed_frames(query, {})
        )
        computed = [frame for name, frame in frames.items() if name in self.plan.streams]
        if not all(name in frames for name in ends) or not all(f.isStreaming for f in computed):
            return {}
        members = [nodes[name] for name in (*query.stream_nodes, *query.batch_nodes)]
        with locate_constant_errors(self.plan, members):
            pushdowns = find_pushdowns(frames[name] for name in ends)
        if any(reads_clock(sql.text) for node in members for sql in sql_texts(node)):
            return {name: Pushdown(pushdown.columns) for name, pushdown in pushdowns.items()}
        return pushdowns

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
            start.createOrReplaceTempView(name)
        for name in query.batch_nodes:
            if name not in frames:
                frames[name] = (derive or self.derive)(
                    self.plan.nodes[name], frames, query, session
                )
        return frames

    def derive(
        self, node: Node, frames: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a transform and registers it as a temporary view."""
        inputs = {name: frames[name] for name in node.inputs}
        with locate_errors(self.plan, node):
            if node.relation is not None:
                self._register(session)
                frame = self._relate_rows(node, inputs, query, session)
                if self.plan.functions:
                    frame = name_columns(frame)
                self._verify(node, frame, inputs)
            else:
                (frame,) = inputs.values()
                step = self.make_step(node, frame.schema, query)
                frame = map_in_arrow(variants_to_json(frame), Chain([step]), to_spark(step.rows))
                frame = mark_variants(frame, step.rows)
            check_duplicate_columns(node, frame)
            check_primary_key(node, frame)
            check_operation(node, frame)
            frame.createOrReplaceTempView(node.name)
        return frame

    def _relate_rows(
        self, node: Node, inputs: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """Returns the output of a relation.

        Spark does not analyze subqueries of streams. A relation that is computed on batches has no
        rows here if it has such subqueries.
        """
        assert node.relation is not None
        streams = frozenset(name for name, rows in inputs.items() if rows.isStreaming)
        if node.name in query.stream_nodes or not node.relation.has_subqueries(streams):
            return self.relate(node, inputs, session)
        try:
            tables = {name: session.createDataFrame([], inputs[name].schema) for name in streams}
            for name, table in tables.items():
                table.createOrReplaceTempView(name)
            return self.relate(node, {**inputs, **tables}, session)
        finally:
            for name, frame in inputs.items():
                frame.createOrReplaceTempView(name)

    def relate(
        self, node: Node, inputs: Mapping[str, DataFrame], session: SparkSession
    ) -> DataFrame:
        """Returns the output of a relation; of an updating one its changes."""
        assert node.relation is not None
        if not node.updating:
            return by_known_keys(by_windows_only(node.relation.relate(inputs, session)))
        try:
            if self.updating is not None:
                return self.updating.derive(node, inputs)
            tables = {name: self.without_operation(name, frame) for name, frame in inputs.items()}
            return as_inserts(table_of(node, tables, session), node.operation)
        finally:
            for name, frame in inputs.items():
                frame.createOrReplaceTempView(name)

    def without_operation(self, name: str, frame: DataFrame) -> DataFrame:
        """Returns the rows of a node without their operation."""
        operation = self.plan.nodes[name].operation
        return frame if operation is None else frame.drop(operation)

    def _register(self, session: SparkSession) -> None:
        """Registers the functions of the pipeline, once in each session."""
        java_session: Any = session._jsparkSession
        key = java_session.hashCode() if self.plan.functions else None
        if key is not None and key not in self._registered:
            register_functions(self.plan.functions, session)
            self._registered.add(key)

    def _verify(self, node: Node, frame: DataFrame, inputs: Mapping[str, DataFrame]) -> None:
        """Compares the plan with Spark's analysis, once for each node. Raises PlanError."""
        if node.name not in self._verified:
            streams = {name: inputs[name] for name in inputs if name in self.plan.streams}
            check_decisions(node, frame, streams)
            self._verified.add(node.name)

    def make_step(self, node: Node, columns: StructType, query: Query) -> Step:
        """Returns the task step of a batch function for input of these columns."""
        assert node.batch_function is not None
        with locate_errors(self.plan, node):
            input_ = sink_schema(columns)
            rows = exchange_schema(node.batch_function.output(input_))
        spool = self.make_spool(node, query, "transform")
        marked = input_ if has_variant(columns) else None
        return Step(node.batch_function, rows, spool, self.run_id, input=marked)

    def make_spool(self, node: Node, query: Query, stage: Stage) -> Spool:
        """Returns the spool of the bad records of a node."""
        directory = str(self.spool / query.name) if self.spool is not None else None
        return Spool(
            self.plan.name, query.name, node.name, stage, node.on_error, directory,
            self.report_dead_letters
            and (node.name in query.dead_letter_nodes or node.kind == "sink"),
            recomputed_for=self.recomputed_for,
        )  # fmt: skip

    def discard_recomputed(self, query: Query, number: int) -> None:
        """Removes the dead letters of a batch that was computed again (see `recomputed_for`)."""
        if self.spool is not None and self.recomputed_for:
            folder = self.spool / query.name / str(number) / self.recomputed_for
            shutil.rmtree(folder, ignore_errors=True)

    def read_static(self, name: str) -> DataFrame:
        """Returns a table, read on the first call. A lookup table has its rows at this time."""
        if name not in self._static:
            node = self.plan.nodes[name]
            with locate_errors(self.plan, node):
                task = self._table_task(node)
                columns = table_columns(node, task.rows)
                table = pa.Table.from_batches(read_all(task), schema=task.rows)
                if node.lookup:
                    key, operation = node.primary_key, lookup_operation(node)
                    table = apply_changes(columns.empty_table(), table, key, operation)
                frame = self.session.createDataFrame(table, to_spark(columns))
                self._static[name] = mark_variants(frame, columns)
        return self._static[name]

    def _table_task(self, node: Node) -> SourceTask:
        """Returns the task of reading a table, whose dead letters have a spool of their own."""
        query = Query(node.name, node.name, (), (), (), dead_letter_nodes=frozenset([node.name]))
        return self.make_source_task(node, query)

    def read_table(self, name: str, query: Query) -> DataFrame:
        """Returns a table of a query. A lookup table has its rows at the start of each batch.

        Without a checkpoint the batches have no numbers, and a lookup table is read once.
        """
        node = self.plan.nodes[name]
        if self.checkpoint is None or not node.lookup or not node.can(Capability.LOOKUP):
            return self.read_static(name)
        key = self.checkpoint, name
        if key not in self._lookups:
            with locate_errors(self.plan, node):
                self._lookups[key] = self._read_lookup(node, query, node.lookup, self.checkpoint)
        return self._lookups[key]

    def _read_lookup(
        self, node: Node, query: Query, options: Lookup, checkpoint: Path
    ) -> DataFrame:
        """Returns a lookup table, which tasks read. Spark estimates its size by the first rows."""
        task = self._table_task(node)
        reports = self.report_dead_letters and node.name in query.dead_letter_nodes
        spool = replace(task.spool, report_dead_letters=reports, by_content=True)
        task = replace(task, spool=spool)
        columns = table_columns(node, task.rows)
        directory = str(checkpoint / LOOKUPS / node.name)
        lookup = LookupTask(
            task, columns, lookup_operation(node), options.cache.ttl, directory, self.run_id
        )
        numbers = self.session.range(0, max(lookup.table(isolated=True).num_rows, 1), 1, 1)
        return mark_variants(numbers.mapInArrow(lookup, to_spark(columns)), columns)

    def types(
        self, errors: dict[str, PenstockError] | None = None, *, unread: bool = False
    ) -> dict[str, StructType]:
        """Returns the columns of all sources and transforms from Spark. Reads no data.

        Checks the sinks, and with `unread` also transforms that no node reads. `errors` are known
        errors by node. Raises UserError, or ValidationErrors with the errors of all nodes whose
        inputs are valid.
        """
        types: dict[str, StructType] = {}
        errors = {} if errors is None else errors
        unread_nodes = unread_queries(self.plan.nodes, self.plan.streams) if unread else ()
        for query in (*self.plan.queries, *unread_nodes):
            frames = self._typed_frames(query, errors)
            types |= {name: frame.schema for name, frame in frames.items()}
            if query.root in frames and query.root in self.plan.streams:
                with _collect_errors(errors, query.root):
                    self.check_streamable(query, frames[query.root])
                    if any(self.plan.nodes[n].late == "dead_letter" for n in query.stream_nodes):
                        self.find_late_rows(query, frames[query.root])
            for name in query.sinks:
                sink = self.plan.nodes[name]
                if sink.inputs[0] in frames:
                    with _collect_errors(errors, name), locate_errors(self.plan, sink):
                        check_sink_schema(sink, frames[sink.inputs[0]].schema)
        raise_all(errors.values())
        return types

    def _typed_frames(self, query: Query, errors: dict[str, PenstockError]) -> dict[str, DataFrame]:
        frames: dict[str, DataFrame] = {}
        for name in dict.fromkeys(
            (*self._static_above(query), *query.stream_nodes, *query.batch_nodes)
        ):
            node = self.plan.nodes[name]
            if name not in errors and all(input_ in frames for input_ in node.inputs):
                with _collect_errors(errors, name):
                    frames[name] = (
                        self._empty_table(node, query)
                        if node.static
                        else self._frame(node, frames, query)
                    )
        return frames

    def _empty_table(self, node: Node, query: Query) -> DataFrame:
        """Returns a static table without its rows."""
        with locate_errors(self.plan, node):
            rows = table_columns(node, self.make_source_task(node, query).rows)
            frame = mark_variants(self.session.createDataFrame([], to_spark(rows)), rows)
            frame.createOrReplaceTempView(node.name)
        return frame

    def check_streamable(self, query: Query, root: DataFrame) -> None:
        """Raises PlanError if Spark cannot compute the root as a stream in the query's mode."""
        jvm = self.session.sparkContext._jvm
        assert jvm is not None
        modes = jvm.org.apache.spark.sql.streaming.OutputMode
        mode = modes.Update() if query.output_mode == "update" else modes.Append()
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        plan = analyzed_plan(by_distinct_values(by_whole_windows(root)))
        try:
            # Of several aggregations Spark checks only one for an event time.
            for part in (plan, *streaming_operators(plan, "Aggregate")):
                checker.checkForStreaming(part, mode)
        except AnalysisException as error:
            raise streaming_error(self.plan, query, error) from error
        for join in streaming_operators(plan, "Join"):
            if class_name(join.joinType()) == "LeftSemi" and _joins_groups(join):
                raise semi_join_error(self.plan, query)

    def _frame(
        self,
        node: Node,
        frames: Mapping[str, DataFrame],
        query: Query,
        pushdown: Pushdown = EVERYTHING,
    ) -> DataFrame:
        if node.kind == "transform":
            frame = self.derive(node, frames, query, self.session)
            frame = self._check_rows(node, frame, frames, query)
            watermark = node.watermark
            if watermark is not None:
                with locate_errors(self.plan, node):
                    check_event_time_column(node, frame.schema, watermark)
                    frame = self._computed_event_time(node, watermark, frame, frames, query)
                frame.createOrReplaceTempView(node.name)
            return frame
        if node.static:
            frame = self.read_table(node.name, query)
        else:
            frame = self._stream(node, query, pushdown)
        frame.createOrReplaceTempView(node.name)
        return frame

    def can_check(self, node: Node, query: Query) -> bool:
        """Returns whether rows on which SQL of a node fails can leave the stream of a query."""
        return is_checkable(node, self.plan.streams, self.make_spool(node, query, stage_of(node)))

    def _check_rows(
        self, node: Node, frame: DataFrame, frames: Mapping[str, DataFrame], query: Query
    ) -> DataFrame:
        """Returns the output of a node, with `checks_rows` without the rows on which it fails."""
        if not self.checks_rows or not self.can_check(node, query):
            return frame
        names = (node.name, *node.inputs)
        (input_,) = (frames[n] for n in names if n in frames and n in self.plan.streams)
        frame = check_node(node, frame, input_, self.make_spool(node, query, stage_of(node)))
        frame.createOrReplaceTempView(node.name)
        return frame

    def _stream(self, node: Node, query: Query, pushdown: Pushdown) -> DataFrame:
        assert isinstance(node.spec, SourceSpec)
        with locate_errors(self.plan, node):
            stateful = self.plan.keeps_state(query)
            if node.late == "dead_letter":
                # Dead letters have whole rows.
                pushdown = replace(pushdown, columns=None)
            task = replace(
                self.make_source_task(node, query),
                pushdown=pushdown,
                null_unused_columns=stateful and node.late == "drop",
                late=None if node.computes_event_time else self._late_capture(node, query),
                partition_idle=partition_idle_time(node) if self.has_late_rows(query) else None,
            )
            # Each reader needs its own registration: Spark changes a map of the registration
            # while it sends the map to tasks.
            self.session.dataSource.register(PenstockDataSource)
            reader = self.session.readStream.format(NAME).schema(to_spark(task.rows))
            reader = reader.name(node.name).option(NODE, node.name)
            frame = mark_variants(reader.option("secret.task", task.pack()).load(), task.rows)
            watermark = node.watermark
            if watermark is not None and watermark.expression is not None:
                self._register(self.session)
                columns = add_event_time(frame, watermark).schema
                check_event_time_column(node, columns, watermark)
                raw, frame = {node.name: frame}, add_event_time(frame, watermark)
                frame = self._check_rows(node, frame, raw, query)
                frame = self._computed_event_time(node, watermark, frame, raw, query)
            elif watermark is not None:
                drops = self.sentinel_only or self.with_sentinel
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
        """Returns the rows of a node with its watermark on a computed column.

        `frames` has the sources of the node. They have no watermark of their own.
        """
        if self.sentinel_only:
            names = stream_sources(node.name, self.plan.nodes, self.plan.streams)
            sources = [frames[name] for name in names]
            rows = sentinel_rows(sources, frame.schema, watermark.column)
            return add_watermark(rows, watermark, drops_sentinel=True)
        if self._has_windows_below(node):
            spool = self.make_spool(node, query, "output")
            late = self._late_capture(node, query)
            frame = check_event_times(frame, watermark.column, spool, self.run_id, late)
        frame = add_watermark(frame, watermark)
        self.watermark_ids[node.name] = watermark_id(frame)
        self._watermarks[self.watermark_ids[node.name]] = node.name
        return frame

    def has_late_rows(self, query: Query) -> bool:
        """Returns whether rows of a query can be late: whether a watermark closes its state."""
        return not self.sentinel_only and query in self.plan.with_windows

    def find_late_rows(self, query: Query, root: DataFrame) -> LateRows | None:
        """Returns the search for the late rows of a query; None if only Spark can count them.

        `root` is built without checks of rows. Raises PlanError if late rows become dead letters,
        and cannot be found row by row.
        """
        if not self.has_late_rows(query):
            return None
        nodes = [self.plan.nodes[name] for name in query.stream_nodes]
        nodes = [node for node in nodes if node.watermark is not None]
        paths = find_exact_paths(query, root, nodes, self._watermarks)
        if paths is None or self.checkpoint is None or self.spool is None:
            return None
        late = {
            node.name: LateNode.of(
                node, *(self._late_spool(node, query, stage) for stage in STAGES)
            )
            for node in nodes
        }
        return LateRows(self.session, self.checkpoint, self.spool / query.name, late, paths)

    def _late_spool(self, node: Node, query: Query, stage: Stage) -> Spool:
        return replace(
            self.make_spool(node, query, stage), on_error="dead_letter", by_query=True,
            report_dead_letters=self.report_dead_letters,
        )  # fmt: skip

    def source_watermarks(self, query: Query) -> PartitionWatermarks | PastWatermarks | None:
        """Returns the watermarks of a query where they do not follow those of Spark, or None."""
        if not self.has_late_rows(query) or self.checkpoint is None or self.spool is None:
            return None
        if query.past_watermarks is not None:
            ids = frozenset(self.watermark_ids.values())
            return PastWatermarks(self.session, ids, query.past_watermarks)
        nodes = [self.plan.nodes[name] for name in query.stream_nodes]
        sources = tuple(
            PartitionedSource(node.name, self.watermark_ids[node.name], node.watermark.delay, idle)
            for node in nodes
            if node.watermark is not None and (idle := partition_idle_time(node)) is not None
        )
        if not sources:
            return None
        folder = self.spool / query.name
        return PartitionWatermarks(self.session, self.checkpoint, folder, sources)

    def _late_capture(self, node: Node, query: Query) -> LateCapture | None:
        """Returns the capture of the candidates of a node for late rows of a query, or None."""
        if self.checkpoint is None or self.spool is None or self.sentinel_only:
            return None
        if node.watermark is None or query not in self.plan.with_windows:
            return None
        return LateCapture(str(self.checkpoint), node.watermark.column)

    def make_source_task(self, node: Node, query: Query) -> SourceTask:
        """Returns the task of reading a source for a query, with columns in Spark's types."""
        source = node.source
        assert isinstance(node.spec, SourceSpec)
        if not isinstance(source, ReplayableSource):
            raise PlanError(f"{node.label} is not replayable", code="not-replayable")
        if source.columns is None:
            raise PlanError(
                f"{node.label} has no schema", code="no-schema",
                hint="Declare the columns, as in schema: id LONG, name STRING, at TIMESTAMP.",
            )  # fmt: skip
        available = source.metadata_schema()
        metadata = source.metadata_columns
        fields = list(source.columns)
        fields += [available.field(name).with_name(column) for column, name in metadata.items()]
        rows = exchange_schema(pa.schema(fields))
        source_fields = list(rows)[: len(source.columns)]
        typed = copy.copy(source)
        typed.columns = pa.schema(source_fields, source.columns.metadata)
        watermark = None if node.computes_event_time else node.watermark
        if watermark is not None and watermark.column not in rows.names:
            raise PlanError(
                f'{node.label} has its watermark on "{watermark.column}", which is not a column',
                code="unknown-column", hint=did_you_mean(watermark.column, rows.names),
            )  # fmt: skip
        return SourceTask(
            typed, rows, metadata, self.make_spool(node, query, "decode"),
            watermark.column if watermark else None, self.sentinel_only,
            poll_timeout=self._poll_timeout(query), latest_time=self._latest_time(node),
            whole_input=query.whole_input,
            checkpoint=None if self.checkpoint is None else str(self.checkpoint),
        )  # fmt: skip

    def _latest_time(self, node: Node) -> datetime | None:
        """Returns the end of the event times of a source with windows downstream, or None."""
        if node.watermark is None or node.computes_event_time or not self._has_windows_below(node):
            return None
        # The last batch of a case holds the sentinel row.
        return END_OF_TIME + timedelta(days=1) if self.with_sentinel else LATEST

    def _has_windows_below(self, node: Node) -> bool:
        return any(node.name in query.stream_nodes for query in self.plan.with_windows)

    def _poll_timeout(self, query: Query) -> float:
        """Returns the maximum seconds of a poll, during which other sources of the query wait."""
        alone = sum(self.plan.nodes[name].kind == "source" for name in query.stream_nodes) == 1
        return 1.0 if alone else 0.1

    def _static_above(self, query: Query) -> tuple[str, ...]:
        members = (*query.stream_nodes, *query.batch_nodes)
        return tuple(name for name in members if self.plan.nodes[name].static)


def source_order(frame: DataFrame) -> tuple[str, ...]:
    """Returns the sources of a streaming DataFrame in the order of Spark's progress reports."""
    nodes = scala_items(analyzed_plan(frame).collectLeaves())
    streams = [node for node in nodes if "Streaming" in class_name(node)]
    return tuple(dict.fromkeys(stream.extraOptions().get(NODE) for stream in streams))


def _joins_groups(join: Any) -> bool:
    """Returns whether a join of streams reads groups, of which Spark's semi join returns none."""
    sides = scala_items(join.children())
    groups = [next(streaming_operators(side, "Aggregate"), None) for side in sides]
    return all(side.isStreaming() for side in sides) and any(groups)


@contextmanager
def _collect_errors(errors: dict[str, PenstockError], name: str) -> Iterator[None]:
    """Collects the error of a node instead of raising it."""
    try:
        yield
    except PenstockError as error:
        errors.setdefault(name, error)

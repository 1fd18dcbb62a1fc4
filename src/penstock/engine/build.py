"""From a plan to DataFrames: streaming ones for what each query computes as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import StructType

from penstock.core.errors import PenstockError, PlanError, raise_all
from penstock.core.text import did_you_mean
from penstock.engine.analysis import not_streamable, texts, told
from penstock.engine.columns import to_arrow, to_spark
from penstock.engine.datasource import NAME, PenstockDataSource
from penstock.engine.function import Chain, Step
from penstock.engine.hints import NODE, hints
from penstock.engine.sentinel import END_OF_TIME
from penstock.engine.source import SourceTask, read_all
from penstock.engine.spool import Spool, Stage
from penstock.plan.hint import EVERYTHING, Hint
from penstock.plan.model import Node, Plan, Query
from penstock.plan.queries import ends_of
from penstock.sdk import ReplayableSource
from penstock.sdk.kit.named import need_columns
from penstock.spec.models import SinkSpec, SourceSpec
from penstock.sql.facts import momentary

Types = Mapping[str, StructType]


@dataclass
class Builder:
    """Builds the DataFrames of one plan in one session.

    `spool` is the directory for dead letters on their way (None: a bad record is an error). With
    `closing` the sources give nothing but the row that closes all windows, with `closed` they give
    it themselves after their own. Without `reports` bad records are passed over in silence, for a
    try; `way` is the spool's. Static tables are read once, when they are first needed.
    """

    plan: Plan
    session: SparkSession
    spool: Path | None = None
    closing: bool = False
    closed: bool = False
    reports: bool = True
    way: str = ""
    _static: dict[str, DataFrame] = field(default_factory=dict)

    def streaming(self, query: Query) -> dict[str, DataFrame]:
        """The DataFrame of each node that `query` computes as a stream, trunk last."""
        frames: dict[str, DataFrame] = {}
        needs = {} if self.closing or self.closed else self.hints(query)
        for name in (*self._static_above(query), *query.within):
            if name not in frames:
                hint = needs.get(name, EVERYTHING)
                frames[name] = self._frame(self.plan.nodes[name], frames, query, hint)
        return frames

    def hints(self, query: Query) -> dict[str, Hint]:
        """What `query` needs of each of its sources; reads no data."""
        nodes = self.plan.nodes
        ends = ends_of(query, nodes)
        frames = {} if any(nodes[n].kind == "source" for n in ends) else self._typed(query, {})
        if not all(name in frames for name in ends):
            return {}
        found = hints(frames[name] for name in ends)
        members = (nodes[name] for name in (*query.within, *query.below))
        if any(momentary(text) for node in members for _, text in texts(node)):
            return {name: Hint(hint.columns) for name, hint in found.items()}
        return found

    def batch(self, query: Query, trunk: DataFrame) -> dict[str, DataFrame]:
        """The same for the nodes below the trunk, of one batch of it."""
        session = trunk.sparkSession
        frames = {name: self.static(name) for name in self._static_above(query)}
        frames[query.trunk] = trunk
        trunk.createOrReplaceTempView(query.trunk)
        for name in query.below:
            if name not in frames:
                frames[name] = self.derived(self.plan.nodes[name], frames, query, session)
        return frames

    def derived(
        self, node: Node, frames: Mapping[str, DataFrame], query: Query, session: SparkSession
    ) -> DataFrame:
        """A transform's output for its inputs in `frames`, also a view by its name."""
        inputs = {name: frames[name] for name in node.inputs}
        with told(self.plan, node):
            if node.relation is not None:
                frame = node.relation.relate(inputs, session)
            else:
                (frame,) = inputs.values()
                step = self.step(node, frame.schema, query)
                frame = frame.mapInArrow(Chain([step]), to_spark(step.rows))
            _refuse_twins(node, frame)
            frame.createOrReplaceTempView(node.name)
        return frame

    def step(self, node: Node, columns: StructType, query: Query) -> Step:
        """A batch function as it runs in tasks, for input of these columns."""
        assert node.batch_function is not None
        with told(self.plan, node):
            rows = to_arrow(to_spark(node.batch_function.output(to_arrow(columns))))
        return Step(node.batch_function, rows, self.spool_of(node, query, "transform"))

    def spool_of(self, node: Node, query: Query, stage: Stage) -> Spool:
        """Where the bad records of a node go."""
        directory = str(self.spool / query.name) if self.spool is not None else None
        return Spool(
            self.plan.name, query.name, node.name, stage, node.on_error, directory,
            self.reports and (node.name in query.reports or node.kind == "sink"), way=self.way,
        )  # fmt: skip

    def static(self, name: str) -> DataFrame:
        """A static table, read whole."""
        if name not in self._static:
            node = self.plan.nodes[name]
            query = Query(name, name, (), (), (), reports=frozenset([name]))
            with told(self.plan, node):
                task = self.task(node, query)
                table = pa.Table.from_batches(read_all(task), schema=task.rows)
                self._static[name] = self.session.createDataFrame(table, to_spark(task.rows))
        return self._static[name]

    def types(self) -> dict[str, StructType]:
        """The columns of every node that is not a sink, told by Spark; reads no data.

        Raises UserError or Mistakes: everything that is wrong with nodes whose inputs are right.
        """
        found: dict[str, StructType] = {}
        wrong: dict[str, PenstockError] = {}
        for query in self.plan.queries:
            frames = self._typed(query, wrong)
            found |= {name: frame.schema for name, frame in frames.items()}
            if query.trunk in frames:
                with _noted(wrong, query.trunk):
                    self.judge(query, frames[query.trunk])
            for name in query.sinks:
                sink = self.plan.nodes[name]
                if sink.inputs[0] in frames:
                    with _noted(wrong, name), told(self.plan, sink):
                        _judge_sink(sink, frames[sink.inputs[0]].schema)
        raise_all(wrong.values())
        return found

    def _typed(self, query: Query, wrong: dict[str, PenstockError]) -> dict[str, DataFrame]:
        frames: dict[str, DataFrame] = {}
        for name in dict.fromkeys((*self._static_above(query), *query.within, *query.below)):
            node = self.plan.nodes[name]
            if name not in wrong and all(above in frames for above in node.inputs):
                with _noted(wrong, name):
                    frames[name] = (
                        self._empty(node, query)
                        if node.static
                        else self._frame(node, frames, query)
                    )
        return frames

    def _empty(self, node: Node, query: Query) -> DataFrame:
        """A static table without its rows."""
        with told(self.plan, node):
            frame = self.session.createDataFrame([], to_spark(self.task(node, query).rows))
            frame.createOrReplaceTempView(node.name)
        return frame

    def judge(self, query: Query, trunk: DataFrame) -> None:
        """Raises PlanError if Spark cannot compute the trunk as a stream in the query's mode."""
        jvm = self.session.sparkContext._jvm
        assert jvm is not None
        modes = jvm.org.apache.spark.sql.streaming.OutputMode
        mode = modes.Update() if query.output_mode == "update" else modes.Append()
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        try:
            checker.checkForStreaming(trunk._jdf.queryExecution().analyzed(), mode)
        except AnalysisException as error:
            raise not_streamable(self.plan, self.plan.nodes[query.trunk], error) from error

    def _frame(
        self, node: Node, frames: Mapping[str, DataFrame], query: Query, hint: Hint = EVERYTHING
    ) -> DataFrame:
        if node.kind == "transform":
            return self.derived(node, frames, query, self.session)
        frame = self.static(node.name) if node.static else self._stream(node, query, hint)
        frame.createOrReplaceTempView(node.name)
        return frame

    def _stream(self, node: Node, query: Query, hint: Hint) -> DataFrame:
        assert isinstance(node.spec, SourceSpec)
        with told(self.plan, node):
            spares = self.plan.nodes[query.trunk].stateful
            task = replace(self.task(node, query), hint=hint, spares=spares)
            # Each reader gets a registration of its own: Spark puts the environment of a running
            # one into a map that all of a registration share, while it sends the map to tasks.
            self.session.dataSource.register(PenstockDataSource)
            reader = self.session.readStream.format(NAME).schema(to_spark(task.rows))
            reader = reader.name(node.name).option(NODE, node.name)
            frame = reader.option("secret.task", task.pack()).load()
            watermark = node.spec.watermark
            if watermark is not None:
                frame = frame.withWatermark(
                    watermark.column, f"{round(watermark.delay * 1000)} milliseconds"
                )
            if (self.closing or self.closed) and task.event_time is not None:
                time = col(task.event_time)
                frame = frame.where(time.isNull() | (time < lit(END_OF_TIME)))
        return frame

    def task(self, node: Node, query: Query) -> SourceTask:
        """All that reading a source for a query takes. Settles the source's columns."""
        source = node.source
        assert isinstance(node.spec, SourceSpec)
        if not isinstance(source, ReplayableSource):
            raise PlanError(f"{node.label} cannot be read again", code="not-replayable")
        if source.columns is None:
            raise PlanError(
                f"{node.label} has no schema", code="no-schema",
                hint="declare it, as in schema: id LONG, name STRING, at TIMESTAMP",
            )  # fmt: skip
        offered = source.metadata()
        metadata = source.metadata_columns
        fields = list(source.columns)
        fields += [offered.field(name).with_name(column) for column, name in metadata.items()]
        rows = to_arrow(to_spark(pa.schema(fields)))
        own = list(rows)[: len(source.columns)]
        source.columns = pa.schema(own, source.columns.metadata)
        watermark = node.spec.watermark
        if watermark is not None and watermark.column not in rows.names:
            raise PlanError(
                f'{node.label} has its watermark on "{watermark.column}", which is not a column',
                code="unknown-column", hint=did_you_mean(watermark.column, rows.names),
            )  # fmt: skip
        return SourceTask(
            source, rows, metadata, self.spool_of(node, query, "decode"),
            watermark.column if watermark else None, self.closing, patience=self._patience(query),
        )  # fmt: skip

    def _patience(self, query: Query) -> float:
        """How long one source may keep Spark waiting; while it does, the others are not asked."""
        alone = sum(self.plan.nodes[name].kind == "source" for name in query.within) == 1
        return 1.0 if alone else 0.1

    def _static_above(self, query: Query) -> tuple[str, ...]:
        members = (*query.within, *query.below)
        return tuple(name for name in members if self.plan.nodes[name].static)


def source_order(frame: DataFrame) -> tuple[str, ...]:
    """The sources of a streaming DataFrame in the order of Spark's progress reports."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = [leaves.apply(index) for index in range(leaves.size())]
    streams = [leaf for leaf in found if "Streaming" in leaf.getClass().getSimpleName()]
    return tuple(dict.fromkeys(leaf.extraOptions().get(NODE) for leaf in streams))


@contextmanager
def _noted(wrong: dict[str, PenstockError], name: str) -> Iterator[None]:
    """Keeps the error of a node instead of raising it."""
    try:
        yield
    except PenstockError as error:
        wrong.setdefault(name, error)


def _judge_sink(sink: Node, columns: StructType) -> None:
    """Raises UserError if rows of these columns cannot be written."""
    assert isinstance(sink.spec, SinkSpec)
    written = to_arrow(columns)
    raise_all(need_columns(sink.spec.primary_key, written, "primary_key"))
    sink.sink.accepts(written)


def _refuse_twins(node: Node, frame: DataFrame) -> None:
    """Spark tells columns apart by their place, everybody else by their names."""
    names = [name.lower() for name in frame.columns]
    twin = next((name for name in frame.columns if names.count(name.lower()) > 1), None)
    if twin is not None:
        raise PlanError(
            f'{node.label} gives the column "{twin}" twice',
            code="duplicate-column",
            hint="name the columns one by one, and one of the two differently with AS",
        )

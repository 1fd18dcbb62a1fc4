"""The PySpark data source `penstock`: all connectors, for pipelines and plain PySpark programs.

A pipeline passes a packed task. A plain PySpark program names the connector and its options:

    spark.readStream.format("penstock").option("type", "files").option("path", "in/*.csv")...
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_origin

import pyarrow as pa
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.core.error_codec import encode_errors
from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.engine.catalyst.columns import to_arrow, to_spark
from penstock.engine.sinks.sink import SinkTask, write
from penstock.engine.sources.source import SourceTask
from penstock.engine.sources.source_readers import BatchReader, StreamReader
from penstock.engine.tasks import task as spark_task
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.stream_batch import StreamBatch
from penstock.sdk import (
    BatchId,
    Component,
    Config,
    Context,
    Format,
    ReplayableSource,
    Sink,
    Source,
    registry,
)
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.operations import add_operation
from penstock.sdk.phases import PhasedSource
from penstock.sdk.registry import Kind

NAME = "penstock"
TASK = "secret.task"
_DATA_SOURCE_OPTIONS = {"type", "format", "schema", "state", "metadata", "on_error", "node", TASK}
_SPARK_OPTIONS = {"checkpointlocation", "queryname"}
_FORMAT, _SECRET = "format.", "secret."


class PenstockDataSource(DataSource):
    """A connector as a PySpark data source.

    The options are `type`, the options of the connector, and:

    * `format`: the type of a format, with its options as `format.NAME`
    * `schema`: DDL, without a call of `.schema()`
    * `metadata`: names of metadata columns, separated by commas
    * `state`: a directory, for sources with state, such as the list of read files
    * `on_error`: `fail` (the default) or `drop`

    Names of options are those of YAML and ignore case. `roll.max_size` is `max_size` within `roll`.
    Items of a list are separated by commas. Spark shows options in its plans, except options
    named `secret.NAME`.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    @encode_errors
    def schema(self) -> StructType:
        return to_spark(self._source_task(None).rows)

    @encode_errors
    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(self._source_task(schema))

    @encode_errors
    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(self._source_task(schema))

    @encode_errors
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise _overwrite_error('Set .mode("append").')
        sink, spool = self._sink()
        run = uuid.uuid4().hex
        sink.context = replace(sink.context, owner=run)
        return BatchWriter(sink, SinkTask.of(sink, spool), run)

    @encode_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        if overwrite:
            raise _overwrite_error('Set .outputMode("append").')
        sink, spool = self._sink()
        batch = StreamBatch(self._type(), self.options.get("checkpointLocation"))
        return StreamWriter(sink, SinkTask.of(sink, spool), batch)

    def _source_task(self, schema: StructType | None) -> SourceTask:
        packed = self.options.get(TASK)
        if packed:
            return SourceTask.unpack(packed)
        source = self._component("source")
        if not isinstance(source, ReplayableSource) or isinstance(source, PhasedSource):
            raise PlanError(
                f'source "{self._type()}" requires a pipeline; plain PySpark cannot read the source'
            )
        if source.truncates:
            raise PlanError(
                f'source "{self._type()}" with on_truncate: apply requires a pipeline, whose sinks '
                "remove the rows",
                hint="Set on_truncate: fail or ignore.",
            )
        source.format = self._format(source)
        metadata = self.options.get("metadata", "").replace(",", " ").split()
        source.metadata_columns = {name: name for name in metadata}
        if schema is None:
            source.columns = self._columns(source)
            extra = [source.metadata_schema().field(name) for name in metadata]
            rows = to_arrow(to_spark(pa.schema([*source.columns, *extra])))
        else:
            rows = to_arrow(schema)
        schema_metadata = source.columns.metadata if source.columns is not None else None
        source.columns = pa.schema([f for f in rows if f.name not in metadata], schema_metadata)
        spool = self._spool("decode")
        return SourceTask(source, rows, source.metadata_columns, spool, commits=True)

    def _columns(self, source: ReplayableSource[Any]) -> pa.Schema:
        declared = self.options.get("schema")
        columns = arrow_schema(declared) if declared else source.schema()
        if columns is None and source.format is not None:
            columns = source.format.declared_schema()
        if columns is None:
            columns = source.columns_of_sample()
        if columns is None:
            raise PlanError(
                "expected a schema; the columns are unknown",
                code="missing-schema",
                hint='Add .schema("id LONG, ...").',
            )
        if source.carries_operations:
            return add_operation(columns, source.operation_column)
        if source.format is not None and source.format.carries_operations:
            return add_operation(columns, source.format.operation_column)
        return columns

    def _sink(self) -> tuple[Sink[Any], Spool]:
        sink = self._component("sink")
        assert isinstance(sink, Sink)
        sink.format = self._format(sink)
        return sink, self._spool("sink")

    def _spool(self, stage: Any) -> Spool:
        on_error = self.options.get("on_error", "fail")
        for allowed in ("fail", "drop"):
            if on_error == allowed:
                return Spool("pyspark", "pyspark", self._type(), stage, allowed)
        raise PlanError(f'option "on_error": expected "fail" or "drop", found "{on_error}"')

    def _type(self) -> str:
        type_ = self.options.get("type")
        if not type_:
            raise PlanError('the option "type" is missing', hint='Add .option("type", "files").')
        return type_

    def _format(self, node: Source[Any] | Sink[Any]) -> Format[Any] | None:
        type_ = self.options.get("format") or node.default_format()
        if type_ is None:
            return None
        options = {k.removeprefix(_FORMAT): v for k, v in self.options.items() if _FORMAT in k}
        component = _create("format", type_, options, Context(topic=node.topic()))
        return component if isinstance(component, Format) else None

    def _component(self, kind: Kind) -> Component[Any]:
        options = {
            name.removeprefix(_SECRET): value
            for name, value in self.options.items()
            if name not in _DATA_SOURCE_OPTIONS | _SPARK_OPTIONS and not name.startswith(_FORMAT)
        }
        state = self.options.get("state")
        context = Context("pyspark", self._type(), Path(state) if state else None)
        return _create(kind, self._type(), options, context)


def _overwrite_error(hint: str) -> PlanError:
    return PlanError("a sink cannot overwrite", code="overwrite", hint=hint)


def _create(kind: Kind, type_: str, texts: Mapping[str, str], context: Context) -> Component[Any]:
    """Creates a component from options as text. Raises PlanError."""
    component = registry.find(kind, type_)
    options = _nest_options(texts, component.config_type)
    for name in options:
        if name not in component.config_type.model_fields:
            raise PlanError(
                f'{kind} "{type_}" has no option "{name}"',
                code="unknown-option",
                hint=did_you_mean(name, component.config_type.model_fields),
            )
    try:
        return component.create(component.config_type.model_validate(options), context)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        option = ".".join(str(part) for part in first["loc"])
        raise PlanError(
            f'{kind} "{type_}", option "{option}": {first["msg"]}', code="invalid-option"
        ) from None


def _nest_options(texts: Mapping[str, str], config: type[Config]) -> dict[str, Any]:
    """Returns options as in YAML: names in their case, `a.b` nested in `a`, lists as lists."""
    known = {name.lower(): name for name in config.model_fields}
    options: dict[str, Any] = {}
    for path, value in texts.items():
        name, _, inner = path.partition(".")
        name = known.get(name.lower(), name)
        if inner:
            options.setdefault(name, {})[inner] = value
        else:
            options[name] = _parse_value(config.model_fields.get(name), value)
    return options


def _parse_value(field: FieldInfo | None, text: str) -> Any:
    if field is not None and get_origin(field.annotation) is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


@dataclass
class ReceiptMessage(WriterCommitMessage):
    """A message from a task to the driver: the receipt of a writer."""

    receipt: dict[str, Any] | None


class BatchWriter(DataSourceArrowWriter):
    """Spark's batch writer of a sink. A write is one batch."""

    @encode_errors
    def __init__(self, sink: Sink[Any], task: SinkTask, run: str) -> None:
        self.packed = pickle.dumps(sink)
        self.task = task
        self.run = run
        sink.recover()

    @encode_errors
    def write(self, iterator: Iterator[pa.RecordBatch]) -> ReceiptMessage:
        receipt = write(self.task, BatchId(self.run, 0), spark_task.partition(), iterator)
        return ReceiptMessage(dict(receipt) if receipt else None)

    @encode_errors
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        sink: Sink[Any] = pickle.loads(self.packed)
        sink.commit(BatchId(self.run, 0), _receipts(messages))
        sink.complete()

    @encode_errors
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Discards the rows of all tasks: commits the batch without them."""
        sink: Sink[Any] = pickle.loads(self.packed)
        sink.commit(BatchId(self.run, 0), [])


class StreamWriter(DataSourceStreamArrowWriter):
    """Spark's stream writer of a sink."""

    def __init__(self, sink: Sink[Any], task: SinkTask, batch: StreamBatch) -> None:
        self.packed = pickle.dumps(sink)
        self.task = task
        self.batch = batch

    @encode_errors
    def write(self, iterator: Iterator[pa.RecordBatch]) -> ReceiptMessage:
        batch = self.batch.identify(self.task.client()[0])
        receipt = write(self.task, batch, spark_task.partition(), iterator)
        identity = {"query": batch.query, "content": batch.content}
        return ReceiptMessage({**receipt, **identity} if receipt else None)

    @encode_errors
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        receipts = _receipts(messages)
        if receipts:
            sink: Sink[Any] = pickle.loads(self.packed)
            query, content = str(receipts[0]["query"]), str(receipts[0]["content"])
            sink.commit(BatchId(query, batchId, content), receipts)


def _receipts(messages: list[WriterCommitMessage | None]) -> list[dict[str, Any]]:
    return [m.receipt for m in messages if isinstance(m, ReceiptMessage) and m.receipt is not None]

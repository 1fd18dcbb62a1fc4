"""Penstock's connectors as one PySpark data source, `penstock`.

A pipeline hands over a packed task. A plain PySpark program names the connector and its options:

    spark.readStream.format("penstock").option("type", "files").option("path", "in/*.csv")...
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.engine import task as spark_task
from penstock.engine.columns import to_arrow, to_spark
from penstock.engine.sink import SinkTask, write
from penstock.engine.source import BatchReader, SourceTask, StreamReader
from penstock.engine.spool import Spool
from penstock.sdk import (
    BatchId,
    Capability,
    Component,
    Config,
    Context,
    Format,
    ReplayableSource,
    Sink,
    Source,
    registry,
)
from penstock.sdk.kit.ddl import arrow_schema
from penstock.sdk.registry import Kind

NAME = "penstock"
_TASK = "secret.task"
_OWN = {"type", "format", "schema", "state", "metadata", "on_error", "node", _TASK}
_SPARKS = {"checkpointlocation", "queryname"}
_FORMAT, _SECRET = "format.", "secret."


class PenstockDataSource(DataSource):
    """Any connector. Options: `type`, those of the connector, and

    `format` (a type, with its options as `format.NAME`), `schema` (DDL, if `.schema()` is not
    called), `metadata` (names, separated by commas), `state` (a directory for sources that keep a
    list of what they have seen), `on_error` (`fail`, the default here, or `drop`). Option names
    are those of the YAML, without regard to case; `roll.size` is `size` in `roll`; a list has
    commas. Spark shows options in its plans, but not one that is named `secret.NAME`.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return to_spark(self._source_task(None).rows)

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(self._source_task(schema))

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(self._source_task(schema))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise PlanError(
                "a sink adds rows and cannot overwrite", code="overwrite", hint='.mode("append")'
            )
        sink, spool = self._sink()
        return BatchWriter(sink, SinkTask.of(sink, spool))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        sink, spool = self._sink()
        return StreamWriter(sink, SinkTask.of(sink, spool))

    def _source_task(self, schema: StructType | None) -> SourceTask:
        packed = self.options.get(_TASK)
        if packed:
            return SourceTask.unpack(packed)
        source = self._component("source")
        if not isinstance(source, ReplayableSource):
            raise PlanError(f'source "{self._type()}" cannot be read from plain PySpark')
        source.format = self._format(source)
        metadata = self.options.get("metadata", "").replace(",", " ").split()
        source.metadata_columns = {name: name for name in metadata}
        if schema is None:
            source.columns = self._columns(source)
            extra = [source.metadata().field(name) for name in metadata]
            rows = to_arrow(to_spark(pa.schema([*source.columns, *extra])))
        else:
            rows = to_arrow(schema)
        kept = source.columns.metadata if source.columns is not None else None
        source.columns = pa.schema([f for f in rows if f.name not in metadata], kept)
        spool = self._spool("decode")
        return SourceTask(source, rows, source.metadata_columns, spool, commits=True)

    def _columns(self, source: ReplayableSource[Any]) -> pa.Schema:
        declared = self.options.get("schema")
        found = arrow_schema(declared) if declared else source.schema()
        if found is None and source.format is not None:
            found = source.format.declared()
        if found is None and Capability.ROWS in source.capabilities:
            found = source.infer()
        if found is None and source.format is not None:
            found = source.format.infer(source.format.records(source.sample(1000)).texts)
        if found is None:
            raise PlanError(
                "the columns are not known", code="no-schema", hint='add .schema("id LONG, ...")'
            )
        return found

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
        raise PlanError(f'"{on_error}" is not a value of on_error here', hint="fail or drop")

    def _type(self) -> str:
        type_ = self.options.get("type")
        if not type_:
            raise PlanError('the option "type" is missing', hint='.option("type", "files")')
        return type_

    def _format(self, node: Source[Any] | Sink[Any]) -> Format[Any] | None:
        type_ = self.options.get("format") or node.format_for()
        if type_ is None:
            return None
        given = {k.removeprefix(_FORMAT): v for k, v in self.options.items() if _FORMAT in k}
        component = _make("format", type_, given, Context(topic=node.topic()))
        return component if isinstance(component, Format) else None

    def _component(self, kind: Kind) -> Component[Any]:
        given = {
            name.removeprefix(_SECRET): value
            for name, value in self.options.items()
            if name not in _OWN | _SPARKS and not name.startswith(_FORMAT)
        }
        state = self.options.get("state")
        context = Context("pyspark", self._type(), Path(state) if state else None)
        return _make(kind, self._type(), given, context)


def _make(kind: Kind, type_: str, given: Mapping[str, str], context: Context) -> Component[Any]:
    """A component from text options. Raises PlanError that names the option."""
    found = registry.find(kind, type_)
    options = _nested(given, found.config_type)
    for name in options:
        if name not in found.config_type.model_fields:
            raise PlanError(
                f'{kind} "{type_}" has no option "{name}"',
                code="unknown-option",
                hint=did_you_mean(name, found.config_type.model_fields),
            )
    try:
        return found.of(found.config_type.model_validate(options), context)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        option = ".".join(str(part) for part in first["loc"])
        raise PlanError(
            f'{kind} "{type_}", option "{option}": {first["msg"]}', code="invalid-option"
        ) from None


def _nested(given: Mapping[str, str], config: type[Config]) -> dict[str, Any]:
    """Options as the YAML has them: in their own case, `a.b` inside of `a`, lists as lists."""
    known = {name.lower(): name for name in config.model_fields}
    options: dict[str, Any] = {}
    for path, value in given.items():
        name, _, inner = path.partition(".")
        name = known.get(name.lower(), name)
        if inner:
            options.setdefault(name, {})[inner] = value
        else:
            options[name] = _value(config.model_fields.get(name), value)
    return options


def _value(field: FieldInfo | None, text: str) -> Any:
    if field is not None and get_origin(field.annotation) is list:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


@dataclass
class Receipted(WriterCommitMessage):
    """A writer's receipt on its way to the driver."""

    receipt: dict[str, Any] | None


class BatchWriter(DataSourceArrowWriter):
    """A sink as PySpark's batch writer: the whole write is one batch."""

    def __init__(self, sink: Sink[Any], task: SinkTask) -> None:
        import uuid

        self.packed = pickle.dumps(sink)
        self.task = task
        self.run = uuid.uuid4().hex
        sink.recover()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Receipted:
        receipt = write(self.task, BatchId(self.run, 0), spark_task.partition(), iterator)
        return Receipted(dict(receipt) if receipt else None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        sink: Sink[Any] = pickle.loads(self.packed)
        sink.finish(BatchId(self.run, 0), _receipts(messages))
        sink.complete()


class StreamWriter(DataSourceStreamArrowWriter):
    """A sink as PySpark's stream writer."""

    def __init__(self, sink: Sink[Any], task: SinkTask) -> None:
        self.packed = pickle.dumps(sink)
        self.task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Receipted:
        batch = BatchId(spark_task.query_id() or "pyspark", spark_task.batch_number() or 0)
        receipt = write(self.task, batch, spark_task.partition(), iterator)
        given = {**receipt, "query": batch.query} if receipt else None
        return Receipted(given)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        receipts = _receipts(messages)
        if receipts:
            sink: Sink[Any] = pickle.loads(self.packed)
            sink.finish(BatchId(str(receipts[0]["query"]), batchId), receipts)


def _receipts(messages: list[WriterCommitMessage | None]) -> list[dict[str, Any]]:
    return [m.receipt for m in messages if isinstance(m, Receipted) and m.receipt is not None]

"""Sources of Streamling as sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from penstock.spec.dialects.options.declarations import (
    Option,
    Options,
    closed_options,
    options,
    unneeded,
)
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling import connections as to
from penstock.spec.dialects.streamling.nodes import Fact, Pipeline, columns_of
from penstock.spec.dialects.streamling.source_changes import HEADERS, add_changes, add_inserts
from penstock.spec.dialects.streamling.telemetry import (
    PARALLELISM,
    TELEMETRY_OPTION,
    read_labels,
)
from penstock.spec.dialects.streamling.types import NAMES, column_type
from penstock.spec.tree.nodes import MappingNode, ScalarNode

_BATCH = "Spark makes batches of the rows that have arrived"
_WRITER = "each record is read by its own schema, and becomes one of the first run"
_COMMON = ("type!", "primary_key = `primary_key`", TELEMETRY_OPTION)
_FORMATS = ("avro", "json")
_FILES = {"parquet": "parquet", "csv": "csv", "json": "json", "ndjson": "json", "jsonl": "json",
          "avro": "avro"}  # fmt: skip
_KAFKA_SCHEMA = (
    unneeded("validate_writer_schema_ordering", _WRITER),
    "schema_id_overrides:list = `registry.replace_ids`",
    unneeded("skip_schema_resolution", _WRITER),
    unneeded("skip_schema_resolution_for_reader_schema_ids", _WRITER),
)
SOURCES: dict[str, Options] = {
    "kafka": closed_options(
        *_COMMON, PARALLELISM, "topic! = `topic`",
        "starting_offsets = `start`: earliest, latest or milliseconds since 1970",
        "include_metadata:boolean = `metadata`: partition, offset and timestamp",
        "filter = a condition of the node's query",
        Option("data_format", choices=_FORMATS, reading="`format`; by default avro"),
        "schema:map = `schema`",
        *_KAFKA_SCHEMA, unneeded("batch_size", _BATCH), unneeded("batch_flush_interval", _BATCH),
    ),
    "clickhouse": closed_options(
        *_COMMON, "table_name! = `table`, or `query` with other options",
        "filter = the condition of `query`",
        "start_at = a condition of `query`; requires `primary_key`",
        "columns = the columns of `query`",
    ),
    "hybrid": closed_options(
        *_COMMON, "bounded_sources!:list = the first `phases`",
        "unbounded_source!:map = the last of `phases`, which `job_mode` does not read",
        "offset_table:map = `start_offsets`",
    ),
    "file": closed_options(
        *_COMMON, PARALLELISM, "path! = `path`",
        Option("format", required=True, choices=tuple(_FILES), reading="`format`"),
        "mode:map = `watch`",
    ),
}  # fmt: skip
"""The sources and their options."""
BOUNDED: Options = closed_options(
    Option("source_type", required=True, choices=("clickhouse",)), "table_name! = `table`",
    unneeded("columns", "the columns are those of the topic"), "filter = the condition of `query`",
    "start_at = a condition of `query`; requires `primary_key`",
)  # fmt: skip
UNBOUNDED: Options = closed_options(
    Option("source_type", required=True, choices=("kafka",)), "topic! = `topic`",
    "filter = a condition of the node's query",
    "start_at = `start`: earliest, latest or milliseconds since 1970", *_KAFKA_SCHEMA,
)  # fmt: skip
OFFSETS: Options = closed_options(
    "topic_name! = a condition of `start_offsets`", "table_name! = the table of `start_offsets`",
    "topic_column = a column of `start_offsets`; by default topic",
    "partition_column = a column of `start_offsets`; by default partition",
    "offset_column = a column of `start_offsets`; by default offset",
)  # fmt: skip
MODE: Options = closed_options(
    Option("type", required=True, choices=("bounded", "continuous"), reading="`watch`"),
    unneeded("poll_interval", "directories are listed as often as their size permits"),
)
_METADATA = {"__kafka_partition": "partition", "__kafka_offset": "offset",
             "__kafka_timestamp": "timestamp"}  # fmt: skip


def kafka(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds the source of a topic, and the query that reads the kind of change of a record."""
    schema = read_schema(reading)
    tree = {
        **_topic(reading, fact, pipeline, reading.get("starting_offsets")),
        "schema": schema,
        "metadata": {HEADERS: "headers", **_metadata(reading)},
        "labels": read_labels(reading, "kafka"),
    }
    add_changes(fact, reading, pipeline, tree, known=schema, filter_=reading.get("filter"))


def clickhouse(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds the source of a table of ClickHouse."""
    key = columns_of(reading.get("primary_key"))
    tree = {
        **_table(reading, pipeline, key, reading.text("columns")),
        "primary_key": key or None,
        "labels": read_labels(reading, "clickhouse"),
    }
    add_inserts(fact, reading, pipeline, tree)


def hybrid(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds the source of tables and then of a topic."""
    key = columns_of(reading.get("primary_key"))
    labels = read_labels(reading, "hybrid")
    bounded = [_table(each, pipeline, key, "") for each in reading.maps("bounded_sources", BOUNDED)]
    last = reading.map("unbounded_source", UNBOUNDED)
    if not bounded or last is None:
        reading.findings.error(
            f"{reading.subject} requires a list of bounded_sources and an unbounded_source",
            reading.node.location, code="missing-option",
        )  # fmt: skip
        return
    topic = _topic(last, fact, pipeline, last.get("start_at"))
    tree: dict[str, Tree] = {
        "type": "hybrid", "phases": [*bounded, topic], "columns_of": "last",
        "start_offsets": _start_offsets(reading, pipeline),
        "skip_last": True if pipeline.settings.is_true("job_mode") else None,
        "metadata": {HEADERS: "headers"}, "primary_key": key or None, "labels": labels,
    }  # fmt: skip
    add_changes(fact, reading, pipeline, tree, known=None, filter_=last.get("filter"))


def file(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds the source of files."""
    mode = reading.map("mode", MODE)
    continuous = mode is None or mode.text("type") != "bounded"
    tree: dict[str, Tree] = {
        "type": "files", "path": reading.text("path"),
        "format": {"type": _FILES.get(reading.text("format").lower(), reading.text("format"))},
        "watch": True if continuous else None,
        "primary_key": columns_of(reading.get("primary_key")) or None,
        "labels": read_labels(reading, "file"),
    }  # fmt: skip
    if continuous and pipeline.settings.is_true("job_mode"):
        reading.findings.error(
            f"{reading.subject} does not end, and the pipeline is a job", reading.where("mode"),
            code="unsupported-option", hint="set mode: {type: bounded}",
        )  # fmt: skip
    add_inserts(fact, reading, pipeline, tree)


READERS: dict[str, Callable[[Fact, Reading, Pipeline], None]] = {
    "kafka": kafka, "clickhouse": clickhouse, "hybrid": hybrid, "file": file,
}  # fmt: skip


def read_schema(reading: Reading) -> dict[str, Tree] | None:
    """Returns the columns of `schema` by name; None without a schema."""
    node = reading.get("schema")
    if not isinstance(node, MappingNode):
        return None
    columns: dict[str, Tree] = {}
    for entry in node.entries:
        written = entry.value.written if isinstance(entry.value, ScalarNode) else ""
        type_ = column_type(written)
        if type_ is None:
            reading.findings.error(
                f'column "{entry.name}" has the type {written or "of a map"}, which is not known',
                entry.value.location, hint=f"use one of {', '.join(NAMES)}",
            )  # fmt: skip
        columns[entry.name] = type_
    return columns


def _topic(reading: Reading, fact: Fact, pipeline: Pipeline, start: object) -> dict[str, Tree]:
    settings = pipeline.settings
    group = settings.written("kafka_source.consumer_group_id")
    is_json = reading.text("data_format").lower() == "json"
    has_schema = reading.get("schema") is not None
    if is_json != has_schema:
        reading.findings.error(
            f"{reading.subject} requires schema with data_format: json" if is_json
            else f"{reading.subject} has schema, and the schema of Avro is in the registry",
            reading.where("schema"), code="missing-option" if is_json else "unsupported-option",
            hint="add schema: {COLUMN: TYPE}" if is_json else "set data_format: json, or remove "
            "schema",
        )  # fmt: skip
    avro = {**to.registry(settings, "kafka_source"), "replace_ids": _replaced_ids(reading)}
    return {
        "type": "kafka", **to.kafka(settings, "kafka_source"), "topic": reading.text("topic"),
        "group": f"{group}-{fact.name}" if group else None, "start": _start(reading, start),
        "format": {"type": "json"} if is_json else {"type": "avro", "registry": avro},
    }  # fmt: skip


def _replaced_ids(reading: Reading) -> dict[str, Tree] | None:
    replaced: dict[str, Tree] = {}
    for each in reading.maps("schema_id_overrides", options("from!:integer", "to!:integer")):
        number = str(each.value("from"))
        if number in replaced:
            each.findings.error(
                f"the schema {number} is replaced twice", each.where("from"), code="duplicate-key"
            )
        replaced[number] = each.value("to")
    return replaced or None


def _start(reading: Reading, node: object) -> Tree:
    text = node.written.strip() if isinstance(node, ScalarNode) else ""
    if re.fullmatch(r"\d+", text):
        time = datetime.fromtimestamp(int(text) / 1000, UTC)
        return {"timestamp": time.isoformat(timespec="milliseconds")}
    if text.lower() not in ("", "earliest", "latest") and isinstance(node, ScalarNode):
        reading.findings.warn(
            f'"{text}" is no start of {reading.subject}, which starts at the earliest record',
            node.location, code="invalid-value",
            hint="write earliest, latest, or milliseconds since 1970",
        )  # fmt: skip
    return "latest" if text.lower() == "latest" else "earliest"


def _metadata(reading: Reading) -> dict[str, str]:
    return _METADATA if reading.value("include_metadata") is True else {}


def _table(reading: Reading, pipeline: Pipeline, key: list[str], columns: str) -> dict[str, Tree]:
    """Returns the source of a table, as a query if some rows or columns are read."""
    settings, name = pipeline.settings, reading.text("table_name")
    condition, start = reading.text("filter"), reading.text("start_at")
    first = key[0] if key else ""
    if start and not first:
        reading.findings.error(
            f"{reading.subject} has start_at, and requires primary_key", reading.where("start_at"),
            code="missing-option", hint="add primary_key: the columns of the sorting key",
        )  # fmt: skip
    value = start.split(",")[0].strip()
    bound = value if re.fullmatch(r"-?\d+(\.\d+)?", value) else f"'{value}'"
    conditions = [f"({condition})"] if condition else []
    conditions += [f"{first} >= {bound}"] if start else []
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    is_query = bool(where or columns)
    seconds = settings.number("clickhouse_source.query_timeout_sec")
    return {
        "type": "clickhouse", **to.clickhouse(settings, "clickhouse_source"),
        "table": None if is_query else name,
        "query": f"SELECT {columns or '*'} FROM {name}{where}" if is_query else None,
        "cursor_columns": key or None if is_query else None,
        "max_records": settings.number("clickhouse_source.page_size"),
        "timeout": f"{seconds}s" if seconds else None,
    }  # fmt: skip


def _start_offsets(reading: Reading, pipeline: Pipeline) -> dict[str, Tree] | None:
    """Returns the query of the offsets at which the topic starts; None without a table of them."""
    table = reading.map("offset_table", OFFSETS)
    if table is None:
        return None
    topic = table.text("topic_name").replace("\\", "\\\\").replace("'", "\\'")
    partition = table.text("partition_column", "partition")
    offset = table.text("offset_column", "offset")
    return {
        "type": "clickhouse", **to.clickhouse(pipeline.settings, "clickhouse_source"),
        "query": f"SELECT {partition} AS partition, max({offset}) AS offset "
        f"FROM {table.text('table_name')} WHERE {table.text('topic_column', 'topic')} = '{topic}' "
        f"GROUP BY {partition}",
        "cursor_columns": ["partition"],
    }  # fmt: skip

"""Sinks of Streamling as sinks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from penstock.spec.dialects.options.declarations import Option, Options, closed_options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.streamling import connections as to
from penstock.spec.dialects.streamling.nodes import Fact, Pipeline
from penstock.spec.dialects.streamling.queries import OPERATION
from penstock.spec.dialects.streamling.requests import REQUEST, request
from penstock.spec.dialects.streamling.sink_nodes import SinkNodes
from penstock.spec.dialects.streamling.tables import aggregates, groups
from penstock.spec.dialects.streamling.telemetry import PARALLELISM, TELEMETRY_OPTION
from penstock.spec.tree.nodes import MappingNode

_LAST = "a batch has the last change of each key"
_LOG = "all changes are written, in their order"
_KEYLESS = "the sink has no key"
_TEST = "a setting of Streamling's own tests; run with --until-caught-up"
_COMMON = (
    "type!", "from! = `from`", TELEMETRY_OPTION, PARALLELISM,
    "batch_size:integer = `batch.max_records`", "batch_flush_interval = `batch.interval`",
)  # fmt: skip
_DEDUPLICATE = unneeded("deduplicate", _LAST)
_KEY = "primary_key = `primary_key`; by default that of the input"
SINKS: dict[str, Options] = {
    "print": closed_options(
        *_COMMON, unneeded("primary_key", _KEYLESS),
        "sample_every:integer = `every`",
        unneeded("num_records_before_stop", _TEST),
    ),
    "blackhole": closed_options(*_COMMON, unneeded("primary_key", _KEYLESS)),
    "memory": closed_options(
        *_COMMON, unneeded("primary_key", _KEYLESS),
        "exclude_gs_op:boolean = the transform `drop`",
    ),
    "webhook": closed_options(
        *_COMMON, unneeded("primary_key", _KEYLESS), *REQUEST,
        "skip_on_error:boolean = `reject`: rows with an error status are dead letters",
    ),
    "postgres": closed_options(
        *_COMMON, _KEY, "table! = `table`", "schema! = the schema of `table`",
        Option("on_conflict", choices=("update", "nothing"), reading="`on_conflict`"),
        "update_where:map = `update_where`", _DEDUPLICATE,
    ),
    "postgres_aggregate": closed_options(
        *_COMMON, _KEY, "schema! = the schema of both tables", "landing_table! = `table`",
        "agg_table! = `aggregate_table`", "group_by:map = `group_by`",
        "aggregate!:map = `aggregates`", _DEDUPLICATE,
    ),
    "kafka": closed_options(
        *_COMMON, "primary_key = `key_columns`; by default that of the input", "topic! = `topic`",
        Option("data_format", required=True, choices=("avro", "json"), reading="`format`"),
        "topic_partitions:integer = `create.partitions`; by default 4",
        "message_max_bytes:integer = the property `message.max.bytes`",
        Option("compression", choices=("none", "gzip", "lz4"), reading="`compression`"),
        unneeded("deduplicate", _LOG),
    ),
    "clickhouse": closed_options(
        *_COMMON, "primary_key! = `order_columns`", "table! = `table`",
        "version_column_name = the version of `engine`; by default insert_time",
        "append_only_mode:boolean = columns is_deleted and insert_time; false is `mode: upsert` "
        "with `deletes: remove`",
        unneeded("deduplicate", "the server keeps the last row of a key"),
        "schema_override:map = `column_types`", "schema_overrides:map = `column_types`",
        Option("compression", choices=("none", "gzip", "zstd", "lz4"),
               reading="`compression`; zstd in place of gzip"),
        unneeded("compression_level", "zstd and lz4 have a level of their own"),
    ),
}  # fmt: skip
"""The sinks and their options."""
_KIND = "__kind"


def print_(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink that prints rows with their kind of change."""
    nodes = SinkNodes(fact, reading, pipeline, "print")
    every = reading.value("sample_every") or pipeline.settings.number("print_sink.sample_every")
    nodes.write({"type": "print", "every": every, "format": to.WRITTEN})


def blackhole(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink that discards rows."""
    SinkNodes(fact, reading, pipeline, "blackhole").write({"type": "blackhole"})


def memory(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink that keeps rows in memory."""
    nodes = SinkNodes(fact, reading, pipeline, "memory")
    if reading.value("exclude_gs_op") is True:
        nodes.above("_rows", {"type": "drop", "from": nodes.input, "columns": [OPERATION]})
    nodes.write({"type": "memory"})


def webhook(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds requests whose responses are not used."""
    nodes = SinkNodes(fact, reading, pipeline, "webhook")
    tree = {"type": "http", **request(reading, pipeline), "format": to.WRITTEN}
    if reading.value("payload_version") == 1:
        nodes.with_operations()
        nodes.select(
            "_rows",
            f"SELECT named_struct('op', {OPERATION}) AS metadata, "
            f"struct(* EXCEPT ({OPERATION})) AS data FROM {{input}}",
        )
    if reading.value("skip_on_error") is True:
        tree |= {"reject": ["4xx", "5xx"], "retry": {"statuses": []}}
    nodes.write(tree)


def postgres(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of a table of PostgreSQL. Without a key deletes have no effect."""
    nodes = SinkNodes(fact, reading, pipeline, "postgres")
    tree: dict[str, Tree] = {
        "type": "postgres", **to.postgres_sink(pipeline.settings, fact.name),
        "table": f"{reading.text('schema')}.{reading.text('table')}",
        "timeout": _seconds(pipeline.settings.number("postgres_sink.statement_timeout_secs")),
        "create_schema": True,
    }  # fmt: skip
    if nodes.key:
        nodes.changes()
        conflict = reading.text("on_conflict").lower()
        tree |= {
            "mode": "upsert", "primary_key": nodes.key,
            "on_conflict": conflict if conflict == "nothing" else None,
            "update_where": reading.get("update_where"),
        }  # fmt: skip
    else:
        nodes.inserts()
        for name in ("on_conflict", "update_where"):
            if reading.get(name) is not None:
                reading.findings.warn(
                    f'"{name}" of {reading.subject} has no effect without a primary key',
                    reading.where(name), hint="add primary_key: the columns of the key",
                )  # fmt: skip
    nodes.write(tree, "postgres_sink")


def postgres_aggregate(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of a table of PostgreSQL and its aggregates."""
    nodes = SinkNodes(fact, reading, pipeline, "postgres_aggregate")
    _require_key(nodes)
    nodes.changes()
    schema = reading.text("schema")
    nodes.write({
        "type": "postgres_aggregate", **to.postgres_sink(pipeline.settings, fact.name),
        "table": f"{schema}.{reading.text('landing_table')}",
        "aggregate_table": f"{schema}.{reading.text('agg_table')}",
        "group_by": groups(reading), "aggregates": aggregates(reading),
        "mode": "upsert", "primary_key": nodes.key, "create_schema": True,
    }, "postgres_sink")  # fmt: skip


def kafka(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of a topic. The kind of change is a header of a record."""
    nodes, settings = SinkNodes(fact, reading, pipeline, "kafka"), pipeline.settings
    _require_key(nodes)
    nodes.with_operations()
    nodes.select(
        "_rows",
        f"SELECT *, CASE {OPERATION} WHEN 'i' THEN 'c' ELSE {OPERATION} END AS {_KIND} "
        "FROM {input}",
    )
    is_json = reading.text("data_format").lower() == "json"
    avro: dict[str, Tree] = {"type": "avro", "registry": to.registry(settings, "kafka_sink")}
    connection = to.kafka(settings, "kafka_sink")
    known = connection["properties"]
    properties: dict[str, Tree] = dict(known) if isinstance(known, dict) else {}
    if reading.get("message_max_bytes") is not None:
        properties["message.max.bytes"] = reading.text("message_max_bytes")
    nodes.write({
        "type": "kafka", **connection, "properties": properties or None,
        "topic": re.sub(r"[{}]", lambda match: match[0] * 2, reading.text("topic")),
        "key_columns": nodes.key, "headers": {"dbz.op": f"{{{_KIND}}}"},
        "exclude_columns": [_KIND], "format": to.WRITTEN if is_json else avro,
        "compression": reading.text("compression", "lz4").lower(),
        "create": {
            "partitions": reading.value("topic_partitions", 4),
            "config": {"retention.ms": "-1", "cleanup.policy": "compact"},
        },
    })  # fmt: skip


def clickhouse(fact: Fact, reading: Reading, pipeline: Pipeline) -> None:
    """Adds a sink of a table of ClickHouse that keeps the last row of each key."""
    nodes, settings = SinkNodes(fact, reading, pipeline, "clickhouse"), pipeline.settings
    chosen = reading.text("compression") or settings.text("clickhouse_sink.compression", "zstd")
    common: dict[str, Tree] = {
        "type": "clickhouse", **to.clickhouse(settings, "clickhouse_sink"),
        "table": reading.text("table"), "order_columns": nodes.key,
        "compression": "zstd" if chosen.lower() == "gzip" else chosen.lower(),
    }  # fmt: skip
    if reading.value("append_only_mode") is False:
        nodes.changes()
        nodes.write({
            **common, "mode": "upsert", "primary_key": nodes.key, "deletes": "remove",
            "column_types": _column_types(reading, {}) or None,
        }, "clickhouse_sink")  # fmt: skip
        return
    version = reading.text("version_column_name")
    time = "" if version else ", date_trunc('SECOND', current_timestamp()) AS insert_time"
    nodes.with_operations()
    nodes.select(
        "_rows",
        f"SELECT * EXCEPT ({OPERATION}), "
        f"CAST(lower({OPERATION}) = 'd' AS TINYINT) AS is_deleted{time} FROM {{input}}",
    )
    own = {"is_deleted": "UInt8"} | ({} if version else {"insert_time": "DateTime"})
    nodes.write({
        **common, "engine": f"ReplacingMergeTree({version or 'insert_time'}, is_deleted)",
        "column_types": _column_types(reading, own), "mode": "append",
    }, "clickhouse_sink")  # fmt: skip


READERS: dict[str, Callable[[Fact, Reading, Pipeline], None]] = {
    "print": print_, "blackhole": blackhole, "memory": memory, "webhook": webhook,
    "postgres": postgres, "postgres_aggregate": postgres_aggregate, "kafka": kafka,
    "clickhouse": clickhouse,
}  # fmt: skip


def _column_types(reading: Reading, own: Mapping[str, str]) -> dict[str, Tree]:
    types: dict[str, Tree] = {**own}
    for name in ("schema_override", "schema_overrides"):
        node = reading.get(name)
        if isinstance(node, MappingNode):
            types |= {entry.name: entry.value for entry in node.entries}
    return types


def _require_key(nodes: SinkNodes) -> None:
    if not nodes.key:
        nodes.reading.findings.error(
            f"{nodes.reading.subject} requires a primary key", nodes.reading.node.location,
            code="missing-option", hint="add primary_key: the columns of the key",
        )  # fmt: skip


def _seconds(number: int | None) -> str | None:
    return f"{number}s" if number else None

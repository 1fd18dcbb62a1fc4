"""The outputs of columns: tables of databases, documents and points."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.spec.dialects.arkflow.components import ENVELOPE
from penstock.spec.dialects.arkflow.connections import database_tls, without_credentials
from penstock.spec.dialects.arkflow.file_inputs import to_url
from penstock.spec.dialects.arkflow.plans import OutputPlan
from penstock.spec.dialects.options.declarations import Option, options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree

_OUTPUT_TYPE = options(
    Option("type", required=True, choices=("mysql", "postgres", "sqlite")), "uri", "path", "name",
    "ssl:map",
)  # fmt: skip
SQL = options(
    *ENVELOPE, "output_type!:map", "table_name", "table", "upsert:boolean", "upsert_keys:list",
    unneeded("batch_size", "rows are written by batch of the run"),
)  # fmt: skip
"""The options of the output `sql`."""
MONGODB = options(*ENVELOPE, "uri!", "database!", "collection!")
"""The options of the output `mongodb`."""
_FIELD = options(
    "field", "field_name", Option("field_type", choices=("float", "integer", "boolean", "string")),
    "name", "value",
    Option("value_type", choices=("float", "integer", "boolean", "string")),
)  # fmt: skip
_TAG = options("field", "tag_name", "name", "value")
INFLUXDB = options(
    *ENVELOPE, "url!", "org!", "bucket!", "token!", "measurement!", "fields!:list", "tags:list",
    "timestamp_field", "batch_size:positive",
    unneeded("flush_interval", "rows are written by batch of the run"), "retry_count:natural",
    "timeout_ms:natural",
)  # fmt: skip
"""The options of the output `influxdb`."""
_TYPES = {"float": "DOUBLE", "integer": "BIGINT", "boolean": "BOOLEAN", "string": "STRING"}


def read_sql(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    database = reading.map("output_type", _OUTPUT_TYPE)
    if database is None:
        return OutputPlan({"type": "blackhole"})
    table = reading.get("table_name") or reading.get("table")
    if table is None:
        reading.findings.error(
            f'{reading.subject} requires "table_name"', reading.node.location,
            code="missing-option",
        )  # fmt: skip
    type_ = database.text("type")
    connection: dict[str, Tree] = {"type": type_}
    if type_ == "sqlite":
        path = database.text("path") or database.text("uri").removeprefix("sqlite://")
        connection["path"] = path
    else:
        url, auth = without_credentials(to_url(database.text("uri")))
        connection |= {"url": url, "auth": auth}
        connection["tls"] = database_tls(database)
    sink: dict[str, Tree] = {**connection, "table": table, "create": False}
    if reading.value("upsert", False) is True:
        keys = reading.texts("upsert_keys")
        if not keys:
            reading.findings.error(
                f'{reading.subject} requires "upsert_keys" with upsert', reading.where("upsert"),
                code="missing-option",
            )  # fmt: skip
        sink |= {"mode": "upsert", "primary_key": [*keys]}
    elif reading.get("upsert_keys") is not None:
        reading.findings.warn(
            f'"upsert_keys" of {reading.subject} has no effect without upsert',
            reading.where("upsert_keys"),
        )
    target: Tree = {**connection, "table": table, "columns": [*columns] if columns else None}
    return OutputPlan(sink, table=target, is_payload=False)


def read_mongodb(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    uri, auth = without_credentials(reading.text("uri"))
    base, _, query = uri.partition("?")
    scheme, _, rest = base.partition("://")
    host = rest.partition("/")[0]
    url = f"{scheme}://{host}/{reading.text('database')}" + (f"?{query}" if query else "")
    sink: dict[str, Tree] = {
        "type": "mongodb", "url": url, "collection": reading.get("collection"), "nulls": "omit",
        "auth": auth,
    }  # fmt: skip
    if reading.get("codec") is not None:
        reading.reject("codec", "documents have no payload")
    rows: Tree = None if columns is None else dict.fromkeys(columns, "VARIANT")
    return OutputPlan(sink, rows=rows, is_payload=False, infer=columns is None)


def read_influxdb(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    if reading.get("codec") is not None:
        reading.reject("codec", "points have no payload")
    rows: dict[str, Tree] = {}
    tags: dict[str, Tree] = {}
    for tag in reading.maps("tags", _TAG):
        column = tag.text("field") or tag.text("value")
        tags[tag.text("tag_name") or tag.text("name") or column] = column
        rows[column] = "STRING"
    fields: dict[str, Tree] = {}
    for each in reading.maps("fields", _FIELD):
        column = each.text("field") or each.text("value")
        type_ = each.text("field_type") or each.text("value_type") or "string"
        name = each.text("field_name") or each.text("name") or column
        fields[name] = {"column": column, "type": type_}
        rows[column] = _TYPES.get(type_, "STRING")
    timestamp = reading.text("timestamp_field")
    if timestamp:
        rows[timestamp] = "BIGINT"
    retries, timeout = reading.value("retry_count"), reading.value("timeout_ms")
    sink: dict[str, Tree] = {
        "type": "influxdb", "url": reading.get("url"), "org": reading.get("org"),
        "bucket": reading.get("bucket"), "auth": {"token": reading.get("token")},
        "measurement": reading.get("measurement"), "tags": tags or None, "fields": fields,
        "timestamp": timestamp or None,
        "retry": {"attempts": max(1, retries)} if isinstance(retries, int) else None,
        "timeout": f"{timeout}ms" if timeout is not None else None,
    }  # fmt: skip
    size = reading.value("batch_size")
    if size is not None:
        sink["batch"] = {"max_records": size}
    return OutputPlan(sink, rows=rows, is_payload=False)

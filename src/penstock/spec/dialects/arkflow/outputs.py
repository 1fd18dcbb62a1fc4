"""Outputs as sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.spec.dialects.arkflow import connections as to
from penstock.spec.dialects.arkflow.codecs import read_auth
from penstock.spec.dialects.arkflow.components import ENVELOPE
from penstock.spec.dialects.arkflow.expressions import set_template
from penstock.spec.dialects.arkflow.plans import OutputPlan
from penstock.spec.dialects.arkflow.table_outputs import (
    INFLUXDB,
    MONGODB,
    SQL,
    read_influxdb,
    read_mongodb,
    read_sql,
)
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.tree.nodes import MappingNode

_NATS_MODE = options(
    Option("type", required=True, choices=("regular", "jet_stream")),
    Option("subject", "any", True), "stream",
)  # fmt: skip
_REDIS_TYPE = options(
    Option("type", required=True, choices=("publish", "list", "hashes", "strings")),
    Option("channel", "any"), Option("key", "any"), Option("field", "any"),
)  # fmt: skip
_VALUE_FIELD = Option("value_field", reading="the column of the payload")

OUTPUTS: dict[str, Options] = {
    "drop": options(*ENVELOPE),
    "stdout": options(*ENVELOPE, "append_newline:boolean"),
    "kafka": options(
        *ENVELOPE, "brokers!:list", Option("topic", "any", True), Option("key", "any"), "client_id",
        Option("compression", choices=("none", "gzip", "snappy", "lz4", "zstd")), "acks",
        _VALUE_FIELD, "exactly_once:boolean", "transactional_id", "security:map",
        unneeded("offset_commit_group", "offsets are in the checkpoint of the run"),
    ),
    "http": options(
        *ENVELOPE, "url!", Option("method", choices=("get", "post", "put", "delete", "patch")),
        "timeout_ms:natural", "retry_count:natural", "headers:map", "auth:map", "body_field",
    ),
    "influxdb": INFLUXDB,
    "mongodb": MONGODB,
    "mqtt": options(
        *ENVELOPE, "host!", "port!:positive", "client_id", Option("topic", "any", True), "username",
        "password", "qos:integer", unneeded("clean_session", "a sink has no subscriptions"),
        "keep_alive:natural", "retain:boolean", _VALUE_FIELD, "tls:map",
    ),
    "nats": options(*ENVELOPE, "url!", "mode!:map", "auth:map", _VALUE_FIELD),
    "pulsar": options(
        *ENVELOPE, "service_url!", Option("topic", "any", True), "auth:map", _VALUE_FIELD
    ),
    "redis": options(*ENVELOPE, "mode!:map", "redis_type!:map", _VALUE_FIELD),
    "sql": SQL,
}  # fmt: skip
"""The outputs and their options."""


def _payloads(sink: dict[str, Tree], reading: Reading, value: str = "value_field") -> OutputPlan:
    plan = OutputPlan({**sink, "format": {"type": "raw", "column": "__payload__"}})
    plan.value = reading.text(value) or None
    return plan


def drop(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    return OutputPlan({"type": "blackhole"})


def stdout(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    newline = None if reading.value("append_newline", True) else False
    return _payloads({"type": "print", "newline": newline}, reading)


def kafka(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    exactly_once = reading.value("exactly_once", False) is True
    if exactly_once and not reading.text("transactional_id"):
        reading.findings.error(
            f'{reading.subject} requires "transactional_id" with exactly_once',
            reading.where("exactly_once"), code="missing-option",
        )  # fmt: skip
    properties = {"client.id": reading.get("client_id")} if reading.get("client_id") else {}
    if (
        reading.get("acks") is not None
        and not exactly_once
        and reading.text("acks") not in {"all", "-1"}
    ):
        reading.findings.warn(
            f'"acks" of {reading.subject} has no effect: the sink awaits all replicas',
            reading.where("acks"),
        )
    plan = _payloads(
        {
            "type": "kafka", "brokers": [*reading.texts("brokers")],
            "compression": reading.text("compression").lower() or None,
            "delivery": "exactly_once" if exactly_once else None,
            "transactional_id": reading.get("transactional_id") if exactly_once else None,
            "properties": properties or None, **to.kafka_security(reading),
        },
        reading,
    )  # fmt: skip
    set_template(plan, reading, "topic", "topic")
    set_template(plan, reading, "key", "key")
    return plan


def http(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    headers = reading.get("headers")
    names = headers.names() if isinstance(headers, MappingNode) else []
    texts: dict[str, Tree] = {
        entry.name: entry.value for entry in headers.entries
    } if isinstance(headers, MappingNode) else {}  # fmt: skip
    if "content-type" not in [name.lower() for name in names]:
        texts["Content-Type"] = "application/json"
    retries = reading.value("retry_count")
    timeout = reading.value("timeout_ms")
    sink: dict[str, Tree] = {
        "type": "http", "url": reading.text("url").replace("{", "{{").replace("}", "}}")
        if "${" not in reading.text("url") else reading.text("url"),
        "method": reading.text("method", "POST").upper(), "headers": texts, "concurrency": 1,
        "timeout": f"{timeout}ms" if timeout is not None else None,
        "retry": {
            "attempts": retries + 1, "backoff": "100ms",
            "statuses": ["3xx", 401, 403, 404, 405, 406, 408, 410, 423, 424, 425, 429, "5xx"],
        }
        if isinstance(retries, int) else None,
        "auth": read_auth(reading),
    }  # fmt: skip
    return _payloads(sink, reading, "body_field")


def mqtt(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    sink = {"type": "mqtt", **to.mqtt_connection(reading), "retain": reading.get("retain")}
    plan = _payloads(sink, reading)
    set_template(plan, reading, "topic", "topic")
    return plan


def nats(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    plan = _payloads({"type": "nats", **to.nats_connection(reading)}, reading)
    mode = reading.map("mode", _NATS_MODE)
    if mode is not None:
        set_template(plan, mode, "subject", "subject")
        if mode.get("stream") is not None:
            plan.sink["stream"] = mode.text("stream")
    return plan


def pulsar(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    plan = _payloads({"type": "pulsar", **to.pulsar_connection(reading)}, reading)
    set_template(plan, reading, "topic", "topic")
    return plan


def redis(reading: Reading, columns: Sequence[str] | None) -> OutputPlan:
    plan = _payloads({"type": "redis", **to.redis_connection(reading)}, reading)
    type_ = reading.map("redis_type", _REDIS_TYPE)
    if type_ is None:
        return plan
    targets = {
        "publish": [("channel", "channel")],
        "list": [("key", "list")],
        "hashes": [("key", "hash"), ("field", "field")],
        "strings": [("key", "key")],
    }
    for name, option in targets.get(type_.text("type").lower(), []):
        if type_.get(name) is None:
            reading.findings.error(
                f'{type_.subject} requires "{name}"', type_.node.location, code="missing-option"
            )
        set_template(plan, type_, name, option)
    return plan


READERS: dict[str, Callable[[Reading, Sequence[str] | None], OutputPlan]] = {
    "drop": drop, "stdout": stdout, "kafka": kafka, "http": http, "influxdb": read_influxdb,
    "mongodb": read_mongodb, "mqtt": mqtt, "nats": nats, "pulsar": pulsar, "redis": redis,
    "sql": read_sql,
}  # fmt: skip
"""The functions that read the options of an output. They get the columns of the last query, if the
text of the query has them."""

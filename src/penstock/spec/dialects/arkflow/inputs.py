"""Inputs as sources."""

from __future__ import annotations

from collections.abc import Callable

from penstock.spec.dialects.arkflow import connections as to
from penstock.spec.dialects.arkflow.codecs import read_auth
from penstock.spec.dialects.arkflow.components import ENVELOPE
from penstock.spec.dialects.arkflow.file_inputs import FILE, SQL, read_file, read_sql
from penstock.spec.dialects.arkflow.plans import RAW, InputPlan
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.tree.nodes import ScalarNode, SequenceNode

FETCH = "Penstock reads batches of records by itself"
_NATS_MODE = options(
    Option("type", required=True, choices=("regular", "jet_stream")), "subject", "queue_group",
    "stream", "consumer_name", "durable_name",
)  # fmt: skip
_REDIS_TYPE = options(
    Option("type", required=True, choices=("subscribe", "list")), "subscribe:map", "list:list"
)
_SUBSCRIBE = options(
    Option("type", required=True, choices=("channels", "patterns")), "channels:list",
    "patterns:list",
)  # fmt: skip
_POINT = options(
    Option(
        "type", required=True,
        choices=("coils", "discrete_inputs", "holding_registers", "input_registers"),
    ),
    "name!", "address!:integer", "quantity:positive",
)  # fmt: skip

INPUTS: dict[str, Options] = {
    "kafka": options(
        *ENVELOPE,
        "brokers!:list = `brokers`",
        "topics!:list = `topic`",
        "consumer_group! = `group`",
        "start_from_latest:boolean = `start: committed` and `reset`",
        "client_id = the name of the client",
        unneeded("fetch_min_bytes", FETCH),
        unneeded("fetch_max_bytes", FETCH),
        unneeded("fetch_max_partition_bytes", FETCH),
        unneeded("fetch_wait_max_ms", FETCH),
        "security:map = `tls` and `auth`",
        unneeded("transactional_offsets", "offsets are in the checkpoint of the run"),
    ),
    "mqtt": options(
        *ENVELOPE,
        "host! = `url`",
        "port!:positive = `url`",
        "client_id = the name of the client",
        "topics!:list = `topic`",
        "username = `auth`",
        "password = `auth`",
        "qos:integer = `qos`; other numbers are 1",
        "clean_session:boolean = `clean_start`",
        "keep_alive:natural = `keep_alive`",
        "tls:map = `tls`",
    ),
    "http": options(
        *ENVELOPE,
        "address! = `listen`",
        "path = `path`",
        "cors_enabled:boolean = `cors`",
        "auth:map = `auth`",
    ),
    "file": FILE,
    "generate": options(
        *ENVELOPE,
        "context! = the payload",
        "interval! = `rate`, or the time of a poll",
        "count:natural = the number of messages in all",
        "batch_size:positive = the messages of a batch",
    ),
    "memory": options(*ENVELOPE, "messages:list = `payloads`"),
    "modbus": options(
        *ENVELOPE,
        "addr! = `connect`",
        "slave_id!:integer = `unit_id`",
        "interval! = `rate`, or the time of a poll",
        "points!:list = `points`; one value is a list, too",
    ),
    "multiple_inputs": options(*ENVELOPE, "inputs!:list = a source for each"),
    "nats": options(
        *ENVELOPE,
        "url! = `url`",
        "mode!:map = `subject` or `stream`; `url` of Redis",
        "auth:map = `auth`",
    ),
    "pulsar": options(
        *ENVELOPE,
        "service_url! = `url`",
        "topic! = `topic`",
        "subscription_name! = `subscription`",
        Option(
            "subscription_type",
            choices=(
                "exclusive",
                "shared",
                "failover",
                "key_shared",
                "keyshared",
            ),
        ),
        "auth:map = `auth`",
        unneeded("retry_config", "lost connections are always retried"),
    ),
    "redis": options(
        *ENVELOPE,
        "mode!:map = `subject` or `stream`; `url` of Redis",
        "redis_type!:map = `channel`, `pattern` or `list`",
    ),
    "sql": SQL,
    "websocket": options(
        *ENVELOPE, "url! = `url`", "timeout:natural = `timeout`", "headers:map = `headers`"
    ),
}
"""The inputs and their options."""


def kafka(reading: Reading) -> InputPlan:
    latest = reading.value("start_from_latest", False)
    properties = {"client.id": reading.get("client_id")} if reading.get("client_id") else None
    return InputPlan({
        "type": "kafka", "brokers": [*reading.texts("brokers")],
        "topic": [*reading.texts("topics")], "group": reading.text("consumer_group"),
        "start": "committed", "reset": "latest" if latest is True else "earliest",
        "properties": properties, **to.kafka_security(reading), **RAW,
    })  # fmt: skip


def mqtt(reading: Reading) -> InputPlan:
    clean = reading.value("clean_session")
    return InputPlan({
        "type": "mqtt", "topic": [*reading.texts("topics")], **to.mqtt_connection(reading),
        "clean_start": clean if clean is True else None, **RAW,
    })  # fmt: skip


def http(reading: Reading) -> InputPlan:
    return InputPlan({
        "type": "http", "listen": reading.text("address"), "path": reading.text("path", "/"),
        "cors": reading.get("cors_enabled"), "auth": read_auth(reading), **RAW,
    })  # fmt: skip


def generate(reading: Reading) -> InputPlan:
    seconds = reading.seconds("interval") or 1e-6
    size = reading.value("batch_size", 1)
    count = reading.value("count")
    source: dict[str, Tree] = {"type": "impulse", "rate": 1 / max(seconds, 1e-6)}
    rows: dict[str, Tree] = {"payload": reading.get("context"), "repeat": size}
    if isinstance(count, int) and isinstance(size, int) and size > 0:
        source["rows"] = -(-count // size)
        rows["total"] = count
    return InputPlan(source, rows, ("counter",), is_bounded=count is not None)


def memory(reading: Reading) -> InputPlan:
    node = reading.get("messages")
    for item in node.items if isinstance(node, SequenceNode) else ():
        if not isinstance(item, ScalarNode) or item.value is None:
            reading.findings.error(
                f"a message of {reading.subject} is a text", item.location, code="wrong-type",
                hint="write JSON in quotes, as in '{\"a\": 1}'",
            )  # fmt: skip
    return InputPlan({"type": "memory", "payloads": node if node is not None else [], **RAW},
                     is_bounded=True)  # fmt: skip


def modbus(reading: Reading) -> InputPlan:
    points = reading.maps("points", _POINT)
    types = {point.text("name"): _point_type(point) for point in points}
    items: list[Tree] = [
        {
            "name": point.get("name"), "kind": point.text("type").lower(),
            "address": point.get("address"), "quantity": point.value("quantity", 1),
        }
        for point in points
    ]  # fmt: skip
    seconds = reading.seconds("interval")
    source: dict[str, Tree] = {
        "type": "modbus", "connect": reading.text("addr"), "unit_id": reading.get("slave_id"),
        "interval": f"{round((seconds or 1) * 1e6)}us", "points": items,
    }  # fmt: skip
    lists = [point.text("name") for point in points if point.value("quantity", 1) == 1]
    rows: dict[str, Tree] = {"rows": True, "lists": [*lists]}
    return InputPlan(source, rows, [*types], types)


def _point_type(point: Reading) -> str:
    is_bit = point.text("type").lower() in ("coils", "discrete_inputs")
    type_ = "BOOLEAN" if is_bit else "BIGINT"
    return type_ if point.value("quantity", 1) == 1 else f"ARRAY<{type_}>"


def nats(reading: Reading) -> InputPlan:
    source: dict[str, Tree] = {"type": "nats", **to.nats_connection(reading), **RAW}
    mode = reading.map("mode", _NATS_MODE)
    if mode is None:
        return InputPlan(source)
    if mode.text("type") == "jet_stream":
        durable = mode.get("durable_name") or mode.get("consumer_name")
        source |= {"stream": mode.text("stream"), "consumer": durable}
    else:
        source |= {"subject": mode.text("subject"), "group": mode.get("queue_group")}
    return InputPlan(source)


def pulsar(reading: Reading) -> InputPlan:
    type_ = reading.text("subscription_type", "exclusive").lower()
    return InputPlan({
        "type": "pulsar", **to.pulsar_connection(reading), "topic": reading.text("topic"),
        "subscription": reading.text("subscription_name"),
        "subscription_type": "key_shared" if type_ == "keyshared" else type_, **RAW,
    })  # fmt: skip


def redis(reading: Reading) -> InputPlan:
    source: dict[str, Tree] = {"type": "redis", **to.redis_connection(reading), **RAW}
    type_ = reading.map("redis_type", _REDIS_TYPE)
    if type_ is None:
        return InputPlan(source)
    subscribe = type_.map("subscribe", _SUBSCRIBE)
    if type_.text("type") == "list":
        source["list"] = [*type_.texts("list")]
    elif subscribe is not None and subscribe.text("type") == "patterns":
        source["pattern"] = [*subscribe.texts("patterns")]
    elif subscribe is not None:
        source["channel"] = [*subscribe.texts("channels")]
    else:
        reading.findings.error(
            f"redis_type of {reading.subject} requires subscribe or list",
            type_.node.location, code="missing-option",
        )  # fmt: skip
    return InputPlan(source)


def websocket(reading: Reading) -> InputPlan:
    timeout = reading.text("timeout")
    return InputPlan({
        "type": "websocket", "url": reading.text("url"), "headers": reading.get("headers"),
        "timeout": f"{timeout}s" if timeout else None, **RAW,
    })  # fmt: skip


READERS: dict[str, Callable[[Reading], InputPlan]] = {
    "kafka": kafka, "mqtt": mqtt, "http": http, "file": read_file, "generate": generate,
    "memory": memory, "modbus": modbus, "nats": nats, "pulsar": pulsar, "redis": redis,
    "sql": read_sql, "websocket": websocket,
}  # fmt: skip
"""The functions that read the options of an input; `multiple_inputs` is read by `streams.py`."""

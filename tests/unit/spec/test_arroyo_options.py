"""Connectors and options of Arroyo are those of Penstock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.spec.yaml.front_end import load

READ = {"type": "json", "timestamp_numbers": "nanos"}
WRITTEN = {"type": "json", "nulls": "keep"}
SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "kafka": (
        "connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json', "
        "'source.read_mode' = 'read_committed', 'source.group_id' = 'g', bad_data = 'drop', "
        "'auth.type' = 'sasl', 'auth.protocol' = 'SASL_SSL', 'auth.mechanism' = 'PLAIN', "
        "'auth.username' = 'u', 'auth.password' = 'p', client_configs = 'client.id=a,retries=2'",
        {
            "type": "kafka", "brokers": "h:9092", "topic": "t", "format": READ,
            "isolation": "committed", "group": "g", "on_error": "drop", "tls": True,
            "auth": {"mechanism": "PLAIN", "username": "u", "password": "p"},
            "properties": {"client.id": "a", "retries": "2"}, "start": "latest",
        },
    ),
    "own names": (
        "connector = 'kafka', brokers = 'h:9092', topic = 't', format = 'json'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t", "format": "json"},
    ),
    "files": (
        "connector = 'filesystem', path = 'in/*', format = 'json', framing = 'newline', "
        "'source.compression' = 'gzip', event_time_field = 'at'",
        {
            "type": "files", "path": "in/*", "compression": "gzip", "watermark": {"column": "at"},
            "format": {**READ, "framing": "lines"},
        },
    ),
    "mqtt": (
        "connector = 'mqtt', url = 'mqtt://h', topic = 't', qos = 'exactly_once', "
        "username = 'u', password = 'p', format = 'json', 'json.timestamp_format' = 'unix_millis'",
        {
            "type": "mqtt", "url": "mqtt://h", "topic": "t", "qos": 2,
            "auth": {"username": "u", "password": "p"},
            "format": {**READ, "timestamps": "millis"},
        },
    ),
    "lines of JSON": (
        "connector = 'single_file', path = 'in', format = 'json', 'json.unstructured' = 'true'",
        {"type": "files", "path": "in", "format": "text"},
    ),
    "lines of text": (
        "connector = 'sse', endpoint = 'http://h/a', format = 'raw_string', framing = 'newline'",
        {"type": "sse", "url": "http://h/a", "format": {"type": "text", "framing": "lines"}},
    ),
    "mqtt over tcp": (
        "connector = 'mqtt', url = 'tcp://h:1883', topic = 't', format = 'raw_string'",
        {"type": "mqtt", "url": "mqtt://h:1883", "topic": "t", "format": "raw"},
    ),
    "changes": (
        "connector = 'single_file', path = 'in', format = 'debezium_json'",
        {"type": "files", "path": "in",
         "format": {"type": "debezium_json", "timestamp_numbers": "nanos"}},
    ),
    "polling": (
        "connector = 'polling_http', endpoint = 'http://h/a', poll_interval_ms = 500, "
        "headers = 'A: b,C: d', emit_behavior = 'changed', format = 'json'",
        {
            "type": "http_poll", "url": "http://h/a", "interval": "500 ms", "emit": "changed",
            "headers": {"A": "b", "C": "d"}, "format": READ,
        },
    ),
    "websocket": (
        "connector = 'websocket', endpoint = 'ws://h/a', 'subscription_messages.0' = 'x', "
        "'subscription_messages.1' = 'y', format = 'json'",
        {"type": "websocket", "url": "ws://h/a", "messages": ["x", "y"], "format": READ},
    ),
    "sse": (
        "connector = 'sse', endpoint = 'http://h/a', events = 'a,b', format = 'json'",
        {"type": "sse", "url": "http://h/a", "events": ["a", "b"], "format": READ},
    ),
    "rabbitmq": (
        "connector = 'rabbitmq', host = 'h', stream = 's', 'source.offset' = 'first', "
        "format = 'json'",
        {"type": "rabbitmq_stream", "url": "amqp://h", "stream": "s", "start": "earliest",
         "format": READ},
    ),
}  # fmt: skip
SINKS: dict[str, tuple[str, dict[str, Any]]] = {
    "kafka": (
        "connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', format = 'json', "
        "'sink.commit_mode' = 'exactly_once', 'sink.key_field' = 'name'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t", "format": WRITTEN,
         "delivery": "exactly_once", "key": "{name}"},
    ),
    "webhook": (
        "connector = 'webhook', endpoint = 'http://h/a', format = 'json'",
        {"type": "http", "url": "http://h/a", "format": WRITTEN},
    ),
    "redis": (
        "connector = 'redis', address = 'redis://h', format = 'json', target = 'hash', "
        "'target.key_prefix' = 'all', 'target.field_column' = 'name'",
        {"type": "redis", "url": "redis://h", "format": WRITTEN, "hash": "all", "field": "{name}"},
    ),
    "redis key": (
        "connector = 'redis', address = 'redis://h', format = 'json', target = 'string', "
        "'target.key_prefix' = 'n:', 'target.key_column' = 'name', 'target.ttl_secs' = 5",
        {"type": "redis", "url": "redis://h", "format": WRITTEN, "key": "n:{name}",
         "ttl": "5 seconds"},
    ),
    "kinesis": (
        "connector = 'kinesis', stream_name = 's', aws_region = 'r', format = 'json', "
        "'sink.flush_interval_millis' = 200",
        {"type": "kinesis", "stream": "s", "region": "r", "format": WRITTEN,
         "batch": {"interval": "200 ms"}},
    ),
    "files": (
        "connector = 'filesystem', path = 'out', format = 'parquet', "
        "'parquet.compression' = 'snappy', 'rolling_policy.interval' = INTERVAL '1' HOUR, "
        "'partitioning.fields' = 'name', 'filename.prefix' = 'p'",
        {"type": "files", "path": "out", "format": {"type": "parquet", "compression": "snappy"},
         "roll": {"interval": "1 hour"}, "partition_by": ["name"], "prefix": "p"},
    ),
}  # fmt: skip
SINKS |= {
    "changes": (
        "connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't', "
        "format = 'debezium_json', 'json.include_schema' = 'true'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t",
         "format": {"type": "debezium_json", "wrapper": "connect", "timestamps": "millis"}},
    ),
}  # fmt: skip
COLUMNS = "(name TEXT, at TIMESTAMP)"


def nodes(tmp_path: Path, script: str, kind: str) -> dict[str, Any]:
    path = tmp_path / "s.sql"
    path.write_text(script)
    app.plan(path)
    found = dict(load([path], env={}).root.data()[kind]["a"])
    found.pop("schema", None)
    found.pop("from", None)
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_source(tmp_path: Path, name: str) -> None:
    options, expected = SOURCES[name]
    script = f"CREATE TABLE a {COLUMNS} WITH ({options}, type = 'source');\nSELECT name FROM a;\n"
    assert nodes(tmp_path, script, "sources") == expected


@pytest.mark.parametrize("name", SINKS)
def test_sink(tmp_path: Path, name: str) -> None:
    options, expected = SINKS[name]
    script = (
        f"CREATE TABLE i {COLUMNS} WITH (connector = 'single_file', path = 'x', format = 'json');\n"
        f"CREATE TABLE a WITH ({options}, type = 'sink');\nINSERT INTO a SELECT * FROM i;\n"
    )
    assert nodes(tmp_path, script, "sinks") == expected


def test_sources_have_an_event_time(tmp_path: Path) -> None:
    """A window over a source without a watermark has the event time that Arroyo assumes."""
    script = (
        "CREATE TABLE a WITH (connector = 'impulse', event_rate = 10, message_count = 5);\n"
        "SELECT count(*) FROM a GROUP BY tumble(INTERVAL '1 second');\n"
    )
    assert nodes(tmp_path, script, "sources") == {
        "type": "impulse", "rate": 10, "rows": 5, "metadata": {"_timestamp": "time"},
        "watermark": {"column": "_timestamp", "delay": "1s"},
    }  # fmt: skip


def test_files_have_the_time_of_the_file(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE a (b INT) WITH (connector = 'single_file', path = 'in', format = 'json');\n"
        "SELECT count(*) FROM a GROUP BY tumble(INTERVAL '1 day');\n"
    )
    source = nodes(tmp_path, script, "sources")
    assert source["metadata"] == {"_timestamp": "modified"}
    assert source["watermark"] == {"column": "_timestamp", "delay": "1s"}


def test_nexmark_ends_after_its_runtime(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE a WITH (connector = 'nexmark', event_rate = '20', runtime = 2.5);\n"
        "SELECT bid FROM a;\n"
    )
    assert nodes(tmp_path, script, "sources") == {"type": "nexmark", "rate": "20", "rows": 50}


def test_a_value_is_required_in_a_column_that_is_not_null(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE a (b INT NOT NULL, c TEXT NULL)\n"
        "WITH (connector = 'files', path = 'in', format = 'json');\nSELECT b FROM a;\n"
    )
    schema = load([path], env={}).root.data()["sources"]["a"]["schema"]
    assert schema == {"b": "INT NOT NULL", "c": "STRING"}


def test_metadata_of_kafka(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE a (o BIGINT METADATA FROM 'offset_id', ms BIGINT METADATA FROM 'timestamp')\n"
        "WITH (connector = 'kafka', bootstrap_servers = 'h:1', topic = 't', format = 'json');\n"
        "SELECT o, ms FROM a;\n"
    )
    path = tmp_path / "s.sql"
    path.write_text(script)
    written = load([path], env={}).root.data()
    assert written["sources"]["a_source"]["metadata"] == {"o": "offset", "ms": "timestamp"}
    assert written["transforms"]["a_generated"]["set"] == {"ms": "unix_millis(`ms`)"}

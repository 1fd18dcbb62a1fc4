"""Connectors and options of Arroyo are those of Penstock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.spec.dialects.arroyo.connectors import CONNECTORS
from penstock.spec.dialects.arroyo.formats import COMMON, OF_FORMATS
from penstock.spec.documents.reading import load

READ = {"type": "json", "timestamp_numbers": "nanos", "nanoseconds": "truncate"}
WRITTEN = {"type": "json", "nulls": "keep", "timestamp_zone": "none", "not_finite": "null"}
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
            "type": "files", "path": "in/*", "compression": "gzip",
            "watermark": {"column": "at", "delay": "1s"},
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
    "framing of tcp": (
        "connector = 'tcp', listen = 'h:1', framing = 'lines', format = 'json'",
        {"type": "tcp", "listen": "h:1", "framing": "lines", "format": "json"},
    ),
    "framing of lengths": (
        "connector = 'tcp', listen = 'h:1', framing.length = 4, format = 'json'",
        {"type": "tcp", "listen": "h:1", "framing": {"length": 4}, "format": "json"},
    ),
    "framing of http_poll": (
        "connector = 'http_poll', url = 'http://h', framing = 'array', format = 'json'",
        {"type": "http_poll", "url": "http://h", "framing": "array", "format": "json"},
    ),
    "framing of udp and of its format": (
        "connector = 'udp', listen = 'h:1', framing = 'lines', format = 'json', "
        "format.framing = 'lines'",
        {
            "type": "udp", "listen": "h:1", "framing": "lines",
            "format": {"type": "json", "framing": "lines"},
        },
    ),
    "mqtt over tcp": (
        "connector = 'mqtt', url = 'tcp://h:1883', topic = 't', format = 'raw_string'",
        {"type": "mqtt", "url": "mqtt://h:1883", "topic": "t", "format": "raw"},
    ),
    "changes": (
        "connector = 'single_file', path = 'in', format = 'debezium_json'",
        {"type": "files", "path": "in",
         "format": {**READ, "type": "debezium_json", "before": "complete"}},
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
         "format": {"type": "debezium_json", "wrapper": "connect", "timestamps": "millis",
                    "not_finite": "null", "decimals": "bytes"}},
    ),
}  # fmt: skip
KAFKA = "connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't'"
ON_KAFKA = {"type": "kafka", "brokers": "h:9092", "topic": "t", "start": "latest"}
SOURCES |= {
    "event time and watermark": (
        f"{KAFKA}, format = 'json', event_time_field = 'at', watermark_field = 'low', "
        "idle_micros = 5000000",
        {**ON_KAFKA, "format": READ,
         "watermark": {"column": "at", "bound": "`low`", "idle": "5000000 us"}},
    ),
    "MSK": (
        f"{KAFKA}, format = 'json', 'auth.type' = 'aws_msk_iam', 'auth.region' = 'eu-west-1', "
        "'source.group_id_prefix' = 'team'",
        {**ON_KAFKA, "format": READ, "tls": True, "group": "team-a",
         "auth": {"mechanism": "AWS_MSK_IAM", "region": "eu-west-1"}},
    ),
    "registry": (
        f"{KAFKA}, format = 'json', 'json.confluent_schema_registry' = 'true', "
        "'schema_registry.endpoint' = 'http://h', 'schema_registry.api_key' = 'k', "
        "'schema_registry.api_secret' = 's', 'value.subject' = 'v'",
        {**ON_KAFKA, "format": {**READ, "registry": {
            "url": "http://h", "subject": "v", "auth": {"username": "k", "password": "s"}}}},
    ),
    "registry that the format does not use": (
        f"{KAFKA}, format = 'json', 'schema_registry.endpoint' = 'http://h'",
        {**ON_KAFKA, "format": READ},
    ),
    "Avro containers": (
        f"{KAFKA}, format = 'avro', 'avro.into_unstructured_json' = 'false'",
        {**ON_KAFKA, "format": {"type": "avro", "framing": "container"}},
    ),
    "Avro datums": (
        f"{KAFKA}, format = 'avro', 'avro.raw_datums' = 'true'", {**ON_KAFKA, "format": "avro"},
    ),
    "confluent": (
        "connector = 'confluent', bootstrap_servers = 'h:9092', topic = 't', key = 'k', "
        "secret = 's', format = 'json', 'json.timestamp_format' = 'RFC3339'",
        {**ON_KAFKA, "format": {**READ, "timestamps": "iso"}, "tls": True,
         "auth": {"username": "k", "password": "s"}},
    ),
    "object store": (
        "connector = 'filesystem', path = 's3::http://h:9000/b/k', format = 'json', "
        "'source.regex_pattern' = '(?i)x\\.json$', 'storage.aws_access_key_id' = 'a', "
        "'storage.aws_secret_access_key' = 'b', 'storage.aws_session_token' = 'c', "
        "'storage.aws_region' = 'r', 'storage.aws_allow_http' = 'true'",
        {"type": "files", "path": "s3://b/k", "format": READ,
         "pattern": r"(?s:.*)(?i:x\.json$)(?s:.*)",
         "storage": {"endpoint_url": "http://h:9000", "region": "r",
                     "auth": {"access_key": "a", "secret_key": "b", "session_token": "c"}}},
    ),
    "R2": (
        "connector = 'filesystem', path = 'r2://me@b/k', format = 'parquet'",
        {"type": "files", "path": "s3://b/k", "format": "parquet", "storage": {
            "endpoint_url": "https://me.r2.cloudflarestorage.com", "region": "auto"}},
    ),
    "console of S3": (
        "connector = 'filesystem', path = 'https://b.s3.us-east-2.amazonaws.com/k', "
        "format = 'parquet', 'storage.skip_signature' = 'true'",
        {"type": "files", "path": "s3://b/k", "format": "parquet",
         "storage": {"region": "us-east-2", "anonymous": True}},
    ),
    "nats": (
        "connector = 'nats', servers = 'h:1,tls://i:2', 'auth.type' = 'jwt', 'auth.jwt' = 'j', "
        "'auth.nkey_seed' = 'SU', stream = 's', format = 'json', "
        "'consumer.ack_policy' = 'explicit', 'consumer.ack_wait' = 30, "
        "'consumer.max_deliver' = -1, 'consumer.filter_subjects' = 'a,b', "
        "'consumer.replay_policy' = 'instant', 'consumer.max_batch' = 5",
        {"type": "nats", "url": ["nats://h:1", "tls://i:2"], "auth": {"jwt": "j", "nkey": "SU"},
         "stream": "s", "subject": ["a", "b"], "format": READ},
    ),
    "consumer of nats": (
        "connector = 'nats', servers = 'nats://h', stream = 's', consumer = 'c', "
        "'consumer.description' = 'd', 'consumer.inactive_threshold' = 60, format = 'json'",
        {"type": "nats", "url": ["nats://h"], "stream": "s", "format": READ, "consumer": "c",
         "consumer_settings": {"description": "d", "inactive_threshold": "60 seconds"}},
    ),
    "rabbitmq with TLS": (
        "connector = 'rabbitmq', host = 'h', port = 5552, stream = 's', format = 'json', "
        "virtual_host = 'v', load_balancer_mode = true, 'tls_config.enabled' = true, "
        "'tls_config.trust_certificates' = true, 'tls_config.root_certificates_path' = '/a', "
        "'tls_config.client_certificates_path' = '/b', 'tls_config.client_keys_path' = '/c'",
        {"type": "rabbitmq_stream", "url": "amqps://h", "stream": "s", "start": "latest",
         "virtual_host": "v", "format": READ,
         "tls": {"verify": False, "ca": "/a", "certificate": "/b", "key": "/c"}},
    ),
    "rabbitmq without TLS": (
        "connector = 'rabbitmq', stream = 's', format = 'json', 'tls_config.enabled' = false, "
        "'tls_config.root_certificates_path' = '/a'",
        {"type": "rabbitmq_stream", "url": "amqp://localhost", "stream": "s", "format": READ,
         "start": "latest"},
    ),
    "queue of rabbitmq": (
        "connector = 'rabbitmq', url = 'amqp://h', queue = 'q', format = 'json'",
        {"type": "rabbitmq", "url": "amqp://h", "queue": "q", "format": "json"},
    ),
    "polling each second": (
        "connector = 'polling_http', endpoint = 'http://h/a', format = 'json'",
        {"type": "http_poll", "url": "http://h/a", "interval": "1s", "format": READ},
    ),
}  # fmt: skip
SINKS |= {
    "redis cluster": (
        "connector = 'redis', 'cluster.addresses' = 'redis://h:1,redis://h:2', format = 'json', "
        "target = 'list', 'target.key_prefix' = 'l', 'target.operation' = 'prepend'",
        {"type": "redis", "url": ["redis://h:1", "redis://h:2"], "cluster": True,
         "format": WRITTEN, "list": "l", "side": "left"},
    ),
    "parquet": (
        "connector = 'filesystem', path = 'out', format = 'parquet', "
        "'parquet.compression' = 'uncompressed', 'parquet.row_group_size' = '128MB', "
        "'rolling_policy.interval' = INTERVAL '1' HOUR, "
        "'rolling_policy.inactivity_interval' = INTERVAL '5' MINUTE",
        {"type": "files", "path": "out",
         "format": {"type": "parquet", "compression": "none", "row_group_size": "128MB"},
         "roll": {"interval": "5 minute"}},
    ),
    "retained": (
        "connector = 'mqtt', url = 'mqtt://h', topic = 't', format = 'json', "
        "'sink.retain' = true, max_packet_size = 1000",
        {"type": "mqtt", "url": "mqtt://h", "topic": "t", "format": WRITTEN, "retain": True},
    ),
}  # fmt: skip
SOURCES |= {
    "Avro of any schema": (
        f"{KAFKA}, format = 'avro', 'avro.raw_datums' = true, 'avro.into_unstructured_json' = true",
        {**ON_KAFKA, "format": {"type": "avro", "as_json": True}},
    ),
    "decimals in an envelope": (
        f"{KAFKA}, format = 'json', 'json.decimal_encoding' = 'bytes', 'json.include_schema' = yes",
        {**ON_KAFKA, "format": {**READ, "decimals": "bytes", "wrapper": "connect"}},
    ),
}
SINKS |= {
    "times and names of files": (
        "connector = 'filesystem', path = 'out', format = 'json', 'json.compression' = 'gzip', "
        "'partitioning.time_pattern' = '%Y/%m', 'partitioning.fields' = [name], "
        "'filename.suffix' = 'json', 'filename.strategy' = 'uuid_v7', 'sink.version' = 'v2', "
        "'rolling_policy.watermark_expiration' = true, 'shuffle_by_partition.enabled' = true, "
        "'multipart.target_part_size' = '8MB', 'multipart.max_parts' = 10, "
        "'multipart.minimum_multipart_size' = '6MB'",
        {"type": "files", "path": "out", "format": WRITTEN, "compression": "gzip",
         "partition_time": {"column": "_partition_time", "pattern": "%Y/%m", "stored": False},
         "partition_by": ["name"], "suffix": ".json"},
    ),
    "decimals": (
        "connector = 'webhook', endpoint = 'http://h/a', format = 'json', "
        "'json.decimal_encoding' = 'string', 'json.include_schema' = true",
        {"type": "http", "url": "http://h/a",
         "format": {**WRITTEN, "decimals": "string", "wrapper": "connect"}},
    ),
}  # fmt: skip
SOURCES |= {
    "limits of a consumer": (
        "connector = 'nats', servers = 'h', stream = 's', \"group\" = 'c', format = 'json', "
        "'consumer.max_ack_pending' = 7, 'consumer.num_replicas' = 3, 'consumer.max_waiting' = 1, "
        "'consumer.sample_frequency' = 1, 'consumer.max_bytes' = 1, 'consumer.max_expires' = 1",
        {"type": "nats", "url": ["nats://h"], "stream": "s", "format": READ, "group": "c",
         "consumer_settings": {"max_ack_pending": 7, "num_replicas": 3}},
    ),
    "certificate of mqtt": (
        "connector = 'mqtt', url = 'mqtts://h', topic = 't', format = 'json', client_prefix = 'p', "
        "'tls.ca' = '/a', 'tls.cert' = '/b', 'tls.key' = '/c', max_packet_size = 1000",
        {"type": "mqtt", "url": "mqtts://h", "topic": "t", "format": READ, "client_id": "p-a",
         "tls": {"ca": "/a", "certificate": "/b", "key": "/c"}, "max_message_size": 1000},
    ),
    "Avro of a registry": (
        f"{KAFKA}, format = 'avro', 'avro.confluent_schema_registry' = 'true', "
        "'schema_registry.endpoint' = 'http://h'",
        {**ON_KAFKA, "format": {"type": "avro", "registry": {"url": "http://h"}}},
    ),
    "framing without effect": (
        "connector = 'sse', endpoint = 'http://h', format = 'json', 'framing.method' = 'newline', "
        "'framing.newline.max_length' = 9",
        {"type": "sse", "url": "http://h", "format": {**READ, "framing": "lines"}},
    ),
    "waiting for control": (
        "connector = 'single_file', path = 'in', format = 'json', wait_for_control = false",
        {"type": "files", "path": "in", "format": READ},
    ),
}  # fmt: skip
SINKS |= {
    "time of a record": (
        f"{KAFKA}, format = 'json', 'sink.timestamp_field' = 'at'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t", "format": WRITTEN,
         "timestamp_column": "at"},
    ),
    "batches of kinesis": (
        "connector = 'kinesis', stream_name = 's', aws_region = 'r', format = 'json', "
        "'sink.max_bytes_per_batch' = 1000, 'sink.max_records_per_batch' = 5",
        {"type": "kinesis", "stream": "s", "region": "r", "format": WRITTEN,
         "batch": {"max_size": 1000, "max_records": 5}},
    ),
    "length of a list": (
        "connector = 'redis', address = 'redis://h', format = 'json', target = 'list', "
        "'target.key_prefix' = 'l', 'target.max_length' = 5",
        {"type": "redis", "url": "redis://h", "format": WRITTEN, "list": "l", "max_length": 5},
    ),
}  # fmt: skip
ELSEWHERE = {
    "connection_profile", "consumer.rate_limit", "event_rate", "event_time_interval",
    "lookup.cache.max_bytes", "message_count", "runtime",
}  # fmt: skip
"""Options in other tests: of connections, generated rows and lookup tables, and an error."""
ICEBERG = (
    "connector = 'iceberg', 'catalog.type' = 'rest', 'catalog.rest.url' = 'http://h/c', "
    "table_name = 't', format = 'parquet'"
)
ON_ICEBERG = {"type": "iceberg", "catalog": {"type": "rest", "url": "http://h/c"}}
SINKS |= {
    "RFC 3339": (
        f"{KAFKA}, format = 'json', 'json.timestamp_format' = 'rfc3339'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t",
         "format": {**WRITTEN, "timestamps": "iso"}},
    ),
    "milliseconds": (
        f"{KAFKA}, format = 'json', 'json.timestamp_format' = 'UnixMillis'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t",
         "format": {"type": "json", "nulls": "keep", "timestamps": "millis",
                    "not_finite": "null"}},
    ),
    "changes in RFC 3339": (
        f"{KAFKA}, format = 'debezium_json', 'json.timestamp_format' = 'RFC3339'",
        {"type": "kafka", "brokers": "h:9092", "topic": "t",
         "format": {"type": "debezium_json", "timestamps": "iso", "timestamp_zone": "none",
                    "not_finite": "null", "decimals": "bytes"}},
    ),
    "delta": (
        "connector = 'delta', path = 's3::http://h:9000/b/k', format = 'parquet', "
        "'parquet.compression' = 'snappy', 'parquet.row_group_size' = '1MB', "
        "'partitioning.fields' = [name], 'partitioning.time_pattern' = '%Y', "
        "'rolling_policy.interval' = INTERVAL '10' MINUTE, 'rolling_policy.file_size' = '1MB', "
        "'rolling_policy.inactivity_interval' = INTERVAL '5' MINUTE, 'filename.prefix' = 'p', "
        "'filename.suffix' = 's', 'filename.strategy' = 'ulid', 'sink.version' = 'v2', "
        "'multipart.max_parts' = 5, 'multipart.target_part_size' = '6MB', "
        "'multipart.minimum_multipart_size' = '1MB', 'shuffle_by_partition.enabled' = true, "
        "'rolling_policy.watermark_expiration' = true, 'storage.aws_region' = 'r'",
        {"type": "delta", "path": "s3://b/k", "partition_by": ["name"],
         "storage": {"endpoint_url": "http://h:9000", "region": "r"},
         "batch": {"interval": "5 minute", "max_size": "1MB"}},
    ),
    "iceberg": (
        f"{ICEBERG}, 'catalog.warehouse' = 'w', 'catalog.rest.token' = 'k', namespace = 'n', "
        "location_path = 's3://b/t', 'parquet.compression' = 'lz4_raw', "
        "'rolling_policy.interval' = '30 seconds', 'storage.endpoint' = 'http://h'",
        {"type": "iceberg", "table": "n.t", "location": "s3://b/t",
         "catalog": {**ON_ICEBERG["catalog"], "warehouse": "w", "auth": {"token": "k"}},
         "table_properties": {"write.parquet.compression-codec": "lz4"},
         "batch": {"interval": "30 seconds"}, "storage": {"endpoint_url": "http://h"}},
    ),
    "blackhole": ("connector = 'blackhole'", {"type": "blackhole"}),
}  # fmt: skip
COLUMNS = "(name TEXT, at TIMESTAMP, low TIMESTAMP)"


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
    is_text = "raw_" in options or "json.unstructured" in options
    columns = "(name TEXT)" if is_text else COLUMNS
    script = f"CREATE TABLE a {columns} WITH ({options}, type = 'source');\nSELECT name FROM a;\n"
    assert nodes(tmp_path, script, "sources") == expected


@pytest.mark.parametrize("name", SINKS)
def test_sink(tmp_path: Path, name: str) -> None:
    options, expected = SINKS[name]
    script = (
        f"CREATE TABLE i {COLUMNS} WITH (connector = 'single_file', path = 'x', format = 'json');\n"
        f"CREATE TABLE a WITH ({options}, type = 'sink');\nINSERT INTO a SELECT * FROM i;\n"
    )
    assert nodes(tmp_path, script, "sinks") == expected


def test_each_option_is_in_a_test() -> None:
    shown = " ".join(options for options, _ in (*SOURCES.values(), *SINKS.values()))
    rules = {*COMMON, *OF_FORMATS}
    for each in CONNECTORS.values():
        rules |= {*each.both, *each.source, *each.sink, *each.of_format}
    tested = {option for option in rules if option in shown or option.startswith("storage.")}
    assert rules - tested == ELSEWHERE


def test_partitions_of_iceberg(tmp_path: Path) -> None:
    script = (
        f"CREATE TABLE i {COLUMNS} WITH (connector = 'single_file', path = 'x', format = 'json');\n"
        f"CREATE TABLE a {COLUMNS} WITH ({ICEBERG}, type = 'sink') PARTITIONED BY (identity(name), "
        "hour(at), bucket(low, 4), void(name));\nINSERT INTO a SELECT * FROM i;\n"
    )
    found = nodes(tmp_path, script, "sinks")
    assert found == {
        **ON_ICEBERG,
        "table": "default.t",
        "partition_by": ["name", "hour(at)", "bucket(4, low)"],
    }


def test_a_profile_is_a_connection(tmp_path: Path) -> None:
    script, connections = tmp_path / "s.sql", tmp_path / "c.yaml"
    script.write_text(
        "CREATE TABLE a (b INT) WITH (connector = 'kafka', connection_profile = 'prod', "
        "topic = 't', format = 'json', 'json.confluent_schema_registry' = 'true', "
        "'schema_registry.endpoint' = 'http://r');\n"
        "SELECT b FROM a;\n"
    )
    connections.write_text(
        "connections:\n  prod: {type: kafka, brokers: 'h:1', properties: {client.id: a}}\n"
    )
    source = load([script, connections], env={}).root.data()["sources"]["a"]
    assert (source["brokers"], source["start"]) == ("h:1", "latest")
    assert source["properties"] == {"client.id": "a"}


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


def test_the_watermark_may_be_a_generated_column(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE a (at TIMESTAMP, low TIMESTAMP GENERATED ALWAYS AS "
        "(at - INTERVAL '5 seconds'))\n"
        f"WITH ({KAFKA}, format = 'json', event_time_field = 'at', watermark_field = 'low');\n"
        "SELECT at FROM a;\n"
    )
    app.plan(path)
    written = load([path], env={}).root.data()
    assert written["transforms"]["a"]["watermark"] == {"column": "at", "bound": "`low`"}


def test_a_watermark_without_an_event_time_bounds_the_time_of_messages(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE a (low TIMESTAMP)\n"
        f"WITH ({KAFKA}, format = 'json', watermark_field = 'low');\n"
        "SELECT count(*) FROM a GROUP BY tumble(INTERVAL '1 second');\n"
    )
    source = nodes(tmp_path, script, "sources")
    assert source["watermark"] == {"column": "_timestamp", "bound": "`low`"}


SECRET = (
    "CREATE TABLE a (b INT) WITH (connector = 'polling_http', endpoint = 'http://h/a',\n"
    "  headers = 'Authorization: Bearer {{ TOKEN }},Accept: text/plain', format = 'json');\n"
    "SELECT b FROM a;\n"
)


def test_placeholders_have_values_of_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(SECRET)
    source = load([path], env={"TOKEN": "x, y"}).root.data()["sources"]["a"]
    assert source["headers"] == {"Authorization": "Bearer x, y", "Accept": "text/plain"}


def test_a_placeholder_without_a_value_is_an_error_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(SECRET)
    with pytest.raises(PenstockError) as caught:
        load([path], env={"OTHER": "x"})
    text = format_error(caught.value)
    assert 'the environment variable "TOKEN" is not set' in text
    assert f"s.sql:2:{SECRET.splitlines()[1].index('{{') + 1}" in text


def test_the_value_of_a_placeholder_is_not_in_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMES", "s3cret")
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE a (b INT) WITH (connector = 'polling_http', endpoint = 'http://h/a',\n"
        "  poll_interval_ms = '{{TIMES}}', format = 'json');\nSELECT b FROM a;\n"
    )
    with pytest.raises(PenstockError) as caught:
        app.plan(path)
    text = format_error(caught.value)
    assert "expects a duration" in text
    assert "s3cret" not in text


def test_braces_are_text_in_other_tables(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE a (b STRING) WITH (connector = 'websocket', url = 'ws://h/a',\n"
        "  messages = ['{{ NAME }}'], format = 'json');\nSELECT b FROM a;\n"
    )
    source = load([path], env={}).root.data()["sources"]["a"]
    assert source["messages"] == ["{{ NAME }}"]


def test_kinesis_is_read_from_its_end_by_default(tmp_path: Path) -> None:
    options = "connector = 'kinesis', stream_name = 's', aws_region = 'r', format = 'json'"
    script = f"CREATE TABLE a {COLUMNS} WITH ({options});\nSELECT name FROM a;\n"
    assert nodes(tmp_path, script, "sources")["start"] == "latest"


def test_metadata_as_a_function(tmp_path: Path) -> None:
    column = "o BIGINT GENERATED ALWAYS AS (metadata('offset_id'))"
    script = f"CREATE TABLE a (id INT, {column}) WITH ({KAFKA}, format = 'json');\nSELECT o FROM a"
    source = nodes(tmp_path, script, "sources")
    assert (source["metadata"], source["metadata_types"]) == ({"o": "offset"}, {"o": "BIGINT"})


def test_options_without_effect_are_warnings(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE i (a INT) WITH (connector = 'sse', endpoint = 'http://h', format = 'json', "
        "framing = 'newline', 'framing.newline.max_length' = 9, event_time_field = 'a');\n"
        "CREATE TABLE o (a INT) WITH (connector = 'filesystem', path = 'x', format = 'parquet', "
        "type = 'sink', 'filename.strategy' = 'ulid', 'filename.prefix' = 'p');\n"
        "INSERT INTO o SELECT a FROM i;\n"
    )
    (tmp_path / "x.sql").write_text(script)
    warnings = load([tmp_path / "x.sql"]).warnings
    assert [(each.code, each.message.partition(": ")[0]) for each in warnings] == [
        ("unused-option", 'the option "framing.newline.max_length" has no effect'),
        ("unused-option", 'the option "filename.strategy" has no effect'),
    ]

"""The connectors of Arroyo: their options, and the options of Penstock."""

from __future__ import annotations

from collections.abc import Container, Mapping

from penstock.spec.dialects.arroyo.combined_options import (
    CONSUMER,
    combine_client,
    combine_consumer,
    combine_kafka,
    combine_runtime,
    combine_target,
    combine_url,
)
from penstock.spec.dialects.arroyo.files import (
    STORAGE,
    TIME_PATTERN,
    combine_files,
    suffix_of,
)
from penstock.spec.dialects.arroyo.lakes import (
    CATALOG,
    DELTA_FORMAT,
    DELTA_SINK,
    FILES,
    ICEBERG_FORMAT,
    combine_iceberg,
)
from penstock.spec.dialects.arroyo.option_rules import (
    SWITCH,
    Connector,
    Key,
    Rules,
    Unsupported,
    split_list,
    split_map,
    template_of,
    url_of_mqtt,
    urls_of_nats,
    whole_match,
    with_unit,
)
from penstock.spec.script.row_times import PARTITION_TIME

_CREDENTIALS: Rules = {"username": Key("auth.username"), "password": Key("auth.password")}
_HEADERS: Rules = {"headers": Key("headers", convert=split_map(":"))}
_OFFSETS = {"earliest": "earliest", "latest": "latest"}

_KAFKA: Rules = {
    "bootstrap_servers": Key("brokers"),
    "auth.type": Key("auth.mechanism", {"none": "", "sasl": "", "aws_msk_iam": "AWS_MSK_IAM"}),
    "auth.protocol": Key(
        "tls",
        {"SASL_SSL": True, "SSL": True, "SASL_PLAINTEXT": False, "PLAINTEXT": False},
    ),
    "client_configs": Key("properties", convert=split_map("=")),
    "schema_registry.endpoint": Key("format.registry.url"),
    "schema_registry.api_key": Key("format.registry.auth.username"),
    "schema_registry.api_secret": Key("format.registry.auth.password"),
    "value.subject": Key("format.registry.subject"),
}
_KAFKA_SOURCE: Rules = {
    "source.offset": Key("start", {**_OFFSETS, "group": "committed"}),
    "source.group_id": Key("group"),
    "source.read_mode": Key(
        "isolation", {"read_committed": "committed", "read_uncommitted": "uncommitted"}
    ),
}
_KAFKA_SINK: Rules = {
    "sink.commit_mode": Key(
        "delivery", {"at_least_once": "at_least_once", "exactly_once": "exactly_once"}
    ),
    "sink.timestamp_field": Key("timestamp_column"),
    "sink.key_field": Key("key", convert=template_of),
}
_FILES_SOURCE: Rules = {
    "source.regex_pattern": Key("pattern", convert=whole_match),
    "source.compression": Key("compression", {"none": "", "zstd": "zstd", "gzip": "gzip"}),
    "wait_for_control": Key(),
}
_FILES_SINK: Rules = {
    "rolling_policy.file_size": Key("roll.max_size"),
    "rolling_policy.interval": Key("roll.interval"),
    "rolling_policy.watermark_expiration": Key("", SWITCH),
    "filename.prefix": Key("prefix"),
    "filename.suffix": Key("suffix", convert=suffix_of),
    "filename.strategy": Key("", dict.fromkeys(("serial", "uuid", "uuid_v7", "ulid"), "")),
    "partitioning.fields": Key("partition_by", convert=split_list),
    TIME_PATTERN: Key(
        "partition_time.pattern",
        also={"partition_time.column": PARTITION_TIME, "partition_time.stored": False},
    ),
    "shuffle_by_partition.enabled": Key("", SWITCH),
    "multipart.target_part_size": Key(),
    "multipart.max_parts": Key(),
    "multipart.minimum_multipart_size": Key(),
    "sink.version": Key("", {"v1": "", "v2": ""}),
}
_FILES = Connector(
    "files", STORAGE, _FILES_SOURCE, _FILES_SINK, combine=combine_files, required=("path",)
)
_SINGLE_FILE = Connector(
    "files",
    STORAGE,
    _FILES_SOURCE,
    sink_defaults={"append": True},
    combine=combine_files,
    required=("path",),
)
_WITHOUT_PREFIX = Unsupported(
    "add 'target.key_prefix' = '...'", "the key is unknown without target.key_prefix"
)
_WITHOUT_TARGET = Unsupported(
    "write target = 'string', 'list' or 'hash'", "the type of the value is unknown without target"
)
_REDIS_SINK: Rules = {
    "target": Key("", dict.fromkeys(("string", "list", "hash"), _WITHOUT_PREFIX)),
    "target.key_prefix": _WITHOUT_TARGET,
    "target.key_column": _WITHOUT_TARGET,
    "target.field_column": Key("field", convert=template_of),
    "target.ttl_secs": Key("ttl", convert=with_unit("seconds")),
    "target.max_length": Key("max_length"),
    "target.operation": Key("side", {"append": "right", "prepend": "left"}),
}

CONNECTORS: Mapping[str, Connector] = {
    "kafka": Connector(
        "kafka", _KAFKA, _KAFKA_SOURCE, _KAFKA_SINK,
        frozenset({"bootstrap_servers"}), {"start": "latest"}, combine_kafka,
        required=("bootstrap_servers", "topic"),
    ),
    "confluent": Connector(
        "kafka",
        {**_KAFKA, "key": Key("auth.username"), "secret": Key("auth.password")},
        _KAFKA_SOURCE, _KAFKA_SINK,
        frozenset({"bootstrap_servers"}), {"start": "latest", "tls": True}, combine_kafka,
        required=("bootstrap_servers", "topic"),
    ),
    "kinesis": Connector(
        "kinesis",
        {"stream_name": Key("stream"), "aws_region": Key("region")},
        {"source.offset": Key("start", _OFFSETS)},
        {
            "sink.flush_interval_millis": Key("batch.interval", convert=with_unit("ms")),
            "sink.max_bytes_per_batch": Key("batch.max_size"),
            "sink.max_records_per_batch": Key("batch.max_records"),
        },
        frozenset({"stream_name"}), {"start": "latest"}, required=("stream_name",),
    ),
    "filesystem": _FILES,
    "single_file": _SINGLE_FILE,
    "delta": Connector(
        "delta", STORAGE, sink=DELTA_SINK, combine=combine_files, of_format=DELTA_FORMAT,
        required=("path",),
    ),
    "iceberg": Connector(
        "iceberg", CATALOG, sink=FILES, combine=combine_iceberg, of_format=ICEBERG_FORMAT,
        required=("catalog.type", "table_name"),
    ),
    "redis": Connector(
        "redis",
        {**_CREDENTIALS, "address": Key("url"),
         "cluster.addresses": Key("url", convert=split_list, also={"cluster": True})},
        {"lookup.cache.max_bytes": Key("lookup.cache.max_bytes")},
        _REDIS_SINK,
        combine=combine_target,
    ),
    "nats": Connector(
        "nats",
        {
            "servers": Key("url", convert=urls_of_nats),
            "auth.type": Key("", {"none": "", "credentials": "", "jwt": ""}),
            "auth.nkey_seed": Key("auth.nkey"),
        },
        CONSUMER,
        combine=combine_consumer,
        required=("servers",),
    ),
    "mqtt": Connector(
        "mqtt",
        {
            **_CREDENTIALS,
            "url": Key("url", convert=url_of_mqtt),
            "qos": Key("qos", {
                "at_most_once": 0, "at_least_once": 1, "exactly_once": 2, "0": 0, "1": 1, "2": 2,
            }),
            "tls.cert": Key("tls.certificate"),
            "client_prefix": Key("client_id"),
        },
        {"max_packet_size": Key("max_message_size")},
        {"sink.retain": Key("retain"), "max_packet_size": Key()},
        combine=combine_client,
        required=("url", "topic"),
    ),
    "rabbitmq": Connector(
        "rabbitmq_stream",
        {
            **_CREDENTIALS,
            "port": Unsupported(
                "write url = 'amqp://host:port' in place of host and port",
                "streams are read with AMQP, which has another port than the stream protocol",
            ),
            "tls_config.trust_certificates": Key("tls.verify", {"true": False, "false": ""}),
            "tls_config.root_certificates_path": Key("tls.ca"),
            "tls_config.client_certificates_path": Key("tls.certificate"),
            "tls_config.client_keys_path": Key("tls.key"),
            "load_balancer_mode": Key(),
        },
        {"source.offset": Key("start", {
            "first": "earliest", "last": "latest", "next": "latest",
        })},
        marks=frozenset({"stream"}),
        defaults={"start": "latest"},
        combine=combine_url,
    ),
    "sse": Connector(
        "sse", {"endpoint": Key("url"), **_HEADERS, "events": Key("events", convert=split_list)},
        required=("endpoint",),
    ),
    "websocket": Connector(
        "websocket",
        {
            "endpoint": Key("url"), **_HEADERS,
            "subscription_message": Key("messages", convert=lambda text: [text]),
        },
        required=("endpoint",),
    ),
    "polling_http": Connector(
        "http_poll",
        {
            "endpoint": Key("url"), **_HEADERS,
            "poll_interval_ms": Key("interval", convert=with_unit("ms")),
            "emit_behavior": Key("emit", {"all": "all", "changed": "changed"}),
        },
        marks=frozenset({"endpoint"}),
        defaults={"interval": "1s"},
        required=("endpoint",),
    ),
    "webhook": Connector(
        "http", {"endpoint": Key("url"), **_HEADERS}, required=("endpoint",)
    ),
    "impulse": Connector(
        "impulse",
        {
            "event_rate": Key("rate"),
            "event_time_interval": Key("interval", convert=with_unit("us")),
            "message_count": Key("rows"),
        },
    ),
    "nexmark": Connector(
        "nexmark",
        {
            "event_rate": Key("rate"),
            "runtime": Unsupported(
                "write event_rate as a number, or limit the number of events with rows",
                "the number of events is unknown without event_rate",
            ),
        },
        combine=combine_runtime,
    ),
    "blackhole": Connector("blackhole"),
    "stdout": Connector("print"),
    "preview": Connector("print"),
}  # fmt: skip
"""The connectors by the name in Arroyo."""

MISSING: Mapping[str, str] = {
    "fluvio": "write the stream to Kafka, and read it with connector = 'kafka'",
}
"""Connectors of Arroyo that Penstock does not have."""


def find_connector(name: str, options: Container[str]) -> Connector:
    """Returns a connector; one without rules if Arroyo does not have it.

    A source of RabbitMQ reads a stream in Arroyo, and a queue only in Penstock.
    """
    if name == "rabbitmq" and "stream" not in options:
        return Connector(name)
    return CONNECTORS.get(name, Connector(name))

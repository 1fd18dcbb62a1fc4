"""The options of formats and of all connectors of Arroyo."""

from __future__ import annotations

from penstock.spec.script.arroyo.keys import Key, Rule, Rules, Unsupported, with_unit

FORMATS = {"raw_string": "raw", "raw_bytes": "raw"}
"""Formats of Arroyo with another name."""
LINES = {"raw_string": "text"}
"""Formats of Arroyo with another name, if lines are records."""
FRAMED = frozenset({"http", "http_poll", "tcp", "udp"})
"""Connectors of Penstock with an option `framing`, which Arroyo does not have."""
_COMPRESSION = Key("compression", {"uncompressed": "", "gzip": "gzip"})
SWITCH = {"true": "", "false": ""}
"""The values of an option that has no effect on results."""
_ISO, _MILLIS = "iso", "millis"

COMMON: Rules = {
    "bad_data": Key("on_error", {"drop": "drop", "fail": "fail"}),
    "event_time_field": Key(),
    "watermark_field": Key(),
    "idle_micros": Key("idle", convert=with_unit("us")),
    "framing": Key("format.framing", {"newline": "lines"}),
    "framing.method": Key("format.framing", {"newline": "lines"}),
    "framing.newline.max_length": Key(),
    "lookup.cache.max_bytes": Key(),
    "connection_profile": Unsupported(
        "write the options here, or define connections in a YAML file that the script is run with",
        "profiles are stored in Arroyo, and not in the script",
    ),
}
_JSON: dict[str, Rule] = {
    "json.unstructured": Key("format", {"true": "raw", "false": ""}),
    "json.include_schema": Key("format.wrapper", {"true": "connect", "false": ""}),
    "json.confluent_schema_registry": Key("", SWITCH),
    "json.timestamp_format": Key("format.timestamps", {
        "rfc3339": _ISO, "RFC3339": _ISO, "unix_millis": _MILLIS, "UnixMillis": _MILLIS,
    }),
    "json.decimal_encoding": Key("format.decimals", {
        name: name for name in ("number", "string", "bytes")
    }),
    "json.compression": _COMPRESSION,
}  # fmt: skip
OF_FORMATS: Rules = {
    **_JSON,
    "avro.confluent_schema_registry": Key("", SWITCH),
    "avro.raw_datums": Key("", SWITCH),
    "avro.into_unstructured_json": Key("format.as_json", {"true": True, "false": ""}),
    "parquet.compression": Key("parquet.compression", {
        "uncompressed": "none", "lz4_raw": "lz4", **{
            name: name for name in ("zstd", "snappy", "gzip", "lz4", "none")
        },
    }),
    "parquet.row_group_size": Key("parquet.row_group_size"),
}  # fmt: skip
"""Options that follow the name of a format."""
OF_REGISTRY = (
    "schema_registry.endpoint",
    "schema_registry.api_key",
    "schema_registry.api_secret",
    "value.subject",
)
"""Options of connectors that apply if payloads have the ID of their schema."""

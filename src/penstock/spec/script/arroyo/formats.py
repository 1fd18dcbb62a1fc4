"""The options of formats and of all connectors of Arroyo."""

from __future__ import annotations

from penstock.spec.script.arroyo.keys import Key, Refused, Rule, Rules, with_unit

FORMATS = {"raw_string": "raw", "raw_bytes": "raw"}
"""Formats of Arroyo with another name."""
LINES = {"raw_string": "text"}
"""Formats of Arroyo with another name, if lines are records."""
_NO_COUNTERPART = Refused("remove the option, which has no counterpart")
_COMPRESSION = Key("compression", {"uncompressed": "", "gzip": "gzip"})
_REGISTRY = {"true": "", "false": ""}

COMMON: Rules = {
    "bad_data": Key("on_error", {"drop": "drop", "fail": "fail"}),
    "event_time_field": Key("watermark.column"),
    "watermark_field": Refused("write WATERMARK FOR time AS time - INTERVAL '5 seconds'"),
    "idle_micros": Key("idle", convert=with_unit("us")),
    "framing": Key("format.framing", {"newline": "lines"}),
    "framing.method": Key("format.framing", {"newline": "lines"}),
    "framing.newline.max_length": Refused("limit messages with max_message_size"),
    "lookup.cache.max_bytes": Key(),
    "connection_profile": Refused(
        "write the options here, or define connections in a YAML file that the script is run with"
    ),
}
_JSON: dict[str, Rule] = {
    "json.unstructured": Key("format", {"true": "raw", "false": ""}),
    "json.include_schema": _NO_COUNTERPART,
    "json.confluent_schema_registry": Key("", _REGISTRY),
    "json.timestamp_format": Key("format.timestamps", {"rfc3339": "iso", "unix_millis": "millis"}),
    "json.decimal_encoding": Key("", {"number": ""}),
    "json.compression": _COMPRESSION,
}
OF_FORMATS: Rules = {
    **_JSON,
    "avro.confluent_schema_registry": Key("", _REGISTRY),
    "avro.raw_datums": Key("", _REGISTRY),
    "avro.into_unstructured_json": Refused("declare the columns of the records"),
    "parquet.row_group_size": Key("format.row_group_rows"),
}
"""Options that follow the name of a format."""

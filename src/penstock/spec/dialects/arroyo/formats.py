"""Formats of tables of Arroyo: their options, and the defaults in which they differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.spec.dialects.arroyo.connectors import CONNECTORS
from penstock.spec.dialects.arroyo.option_rules import (
    SWITCH,
    Connector,
    Key,
    Rule,
    Rules,
    Unsupported,
    Value,
    is_true,
    with_unit,
)
from penstock.spec.script.dialect import Kind

_FORMATS = {"raw_string": "raw", "raw_bytes": "raw"}
"""Formats of Arroyo with another name."""
_FLOATS = ("DOUBLE", "FLOAT", "REAL")
_LINES = {"raw_string": "text"}
"""Formats of Arroyo with another name, if lines are records."""
_FRAMED = frozenset({"http", "http_poll", "tcp", "udp"})
"""Connectors of Penstock with an option `framing`, which Arroyo does not have."""
_COMPRESSION = Key("compression", {"uncompressed": "", "gzip": "gzip"})
_ISO, _MILLIS = "iso", "millis"

PROFILE = "connection_profile"
"""The option that names a connection profile, which is a connection of Penstock."""
COMMON: Rules = {
    "bad_data": Key("on_error", {"drop": "drop", "fail": "fail"}),
    "event_time_field": Key(),
    "watermark_field": Key(),
    "idle_micros": Key("idle", convert=with_unit("us")),
    "framing": Key("format.framing", {"newline": "lines"}),
    "framing.method": Key("format.framing", {"newline": "lines"}),
    "framing.newline.max_length": Key(),
    "lookup.cache.max_bytes": Key(),
    PROFILE: Key("connection"),
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
_OF_REGISTRY = (
    "schema_registry.endpoint",
    "schema_registry.api_key",
    "schema_registry.api_secret",
    "value.subject",
)
"""Options of connectors that apply if payloads have the ID of their schema."""
_UNSTRUCTURED = "json.unstructured"
_FRAMING = {"framing", "framing.method"}
REGISTERED = ("json.confluent_schema_registry", "avro.confluent_schema_registry")


def is_of_arroyo(name: str, connector: Connector, kind: Kind, options: Mapping[str, str]) -> bool:
    """Returns whether a table has a connector or an option that only Arroyo has."""
    if connector.type and connector.type != name:
        return True
    rules = {**common_rules(options), **OF_FORMATS, **connector.rules(kind)}
    if kind == "sink":
        rules |= connector.of_format
    return any(
        option in rules and not (isinstance(rule := rules[option], Key) and rule.target == option)
        for option in options
    )


def common_rules(options: Mapping[str, str]) -> Rules:
    """Returns the rules of options of all connectors, without options of the connector itself."""
    if not _is_own_framing(options):
        return COMMON
    return {name: rule for name, rule in COMMON.items() if name not in _FRAMING}


def _is_own_framing(options: Mapping[str, str]) -> bool:
    """Returns whether `framing` is the option of a connector that Arroyo does not have."""
    name = options.get("connector", "")
    is_unknown = bool(name) and name not in CONNECTORS
    return name in _FRAMED or (is_unknown and _framing(options) != "newline")


def _framing(options: Mapping[str, str]) -> str | None:
    return options.get("framing", options.get("framing.method"))


def format_rules(
    connector: Connector, options: Mapping[str, str], kind: Kind = "source"
) -> dict[str, Rule]:
    """Returns the rules of the options of the format. `options` are texts by name."""
    own = {name: rule for name, rule in connector.source.items() if name in COMMON}
    rules: dict[str, Rule] = {**common_rules(options), **OF_FORMATS, **own}
    if _has_lines(connector, options):
        rules[_UNSTRUCTURED] = Key("format", {"true": "text", "false": ""})
    if not uses_registry(options):
        rules |= dict.fromkeys(_OF_REGISTRY, Key())
    if connector.type != "files":
        rules["json.compression"] = Key("", {"uncompressed": "", "gzip": Unsupported(
            "remove the option", "it belongs to the files of filesystem",
        )})  # fmt: skip
    if options.get("format") == "raw_bytes":
        rules |= dict.fromkeys(_FRAMING & rules.keys(), Unsupported(
            "write format = 'raw_string', and a column of the type TEXT", "lines are texts",
        ))  # fmt: skip
    if options.get("format") == "debezium_json":
        rules["json.confluent_schema_registry"] = Key("", {"false": "", "true": Unsupported(
            "let Debezium write Avro, and use format = 'debezium_avro' with format.registry.url",
            "change events in JSON have no ID of a schema",
        )})  # fmt: skip
    if kind == "sink":
        rules |= connector.of_format
    return rules


def uses_registry(options: Mapping[str, str]) -> bool:
    """Returns whether payloads have the ID of their schema."""
    return any(is_true(options.get(name, "")) for name in REGISTERED)


def format_name(connector: Connector, options: Mapping[str, str]) -> str | None:
    """Returns the name of a format of Arroyo in Penstock; None if it is the same."""
    names = {**_FORMATS, **_LINES} if _has_lines(connector, options) else _FORMATS
    return names.get(options.get("format", ""))


def default_options(
    connector: Connector, kind: Kind, options: Mapping[str, str], types: Collection[str]
) -> dict[str, Value]:
    """Returns the options of the format that a table of Arroyo has unless it names them.

    Nulls are written, also for NaN and infinity, and timestamps without a zone. Numbers are
    timestamps in nanoseconds, and digits below a microsecond are truncated, but change events are
    written with milliseconds, and with the bytes of decimals. The rows before changes are complete.
    A payload of Avro is a container. `types` are those of the columns; without columns a table may
    have all types.
    """
    has_times, has_decimals, *has_floats = (
        not types or any(name in type_.upper() for type_ in types)
        for name in ("TIMESTAMP", "DECIMAL", *_FLOATS)
    )
    format_ = options.get("format")
    if format_ == "avro" and connector.type != "files":
        is_datum = uses_registry(options) or is_true(options.get("avro.raw_datums", ""))
        return {} if is_datum else {"format.framing": "container"}
    if format_ not in ("json", "debezium_json") or is_true(options.get(_UNSTRUCTURED, "")):
        return {}
    if kind != "sink":
        times: dict[str, Value] = (
            {"format.timestamp_numbers": "nanos", "format.nanoseconds": "truncate"}
            if has_times
            else {}
        )
        return {**times, "format.before": "complete"} if format_ == "debezium_json" else times
    form = options.get("json.timestamp_format", "rfc3339" if format_ == "json" else "unix_millis")
    written: dict[str, Value] = {}
    if has_times and form.lower() == "rfc3339":
        written = {"format.timestamp_zone": "none"}
    elif has_times:
        written = {"format.timestamps": "millis"}
    if any(has_floats):
        written["format.not_finite"] = "null"
    if format_ == "json":
        return {"format.nulls": "keep", **written}
    return written | ({"format.decimals": "bytes"} if has_decimals else {})


def _has_lines(connector: Connector, options: Mapping[str, str]) -> bool:
    """Returns whether a record is a line: of a file, or of a message."""
    is_of_format = not _is_own_framing(options) and _framing(options) == "newline"
    return connector.type == "files" or is_of_format

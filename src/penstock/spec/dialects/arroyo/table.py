"""The table of Arroyo's connectors, formats, statements and functions, for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.spec.dialects.arroyo.connectors import CONNECTORS, MISSING
from penstock.spec.dialects.arroyo.formats import COMMON, OF_FORMATS
from penstock.spec.dialects.arroyo.option_rules import Connector, Rule, Rules, Unsupported
from penstock.spec.dialects.arroyo.unneeded import reason
from penstock.spec.dialects.options.listing import Row

_SAME: Mapping[str, tuple[str, ...]] = {
    "kafka": ("topic", "auth.mechanism", "auth.username", "auth.password", "auth.region"),
    "confluent": ("topic",), "filesystem": ("path",), "single_file": ("path",),
    "delta": ("path",), "iceberg": ("catalog.warehouse",),
    "nats": ("stream", "subject", "auth.username", "auth.password", "auth.jwt"),
    "mqtt": ("topic", "tls.ca", "tls.key"), "rabbitmq": ("stream", "virtual_host"),
    "polling_http": ("method", "body"),
}  # fmt: skip
"""Options with the same name and meaning."""
_COMBINED: Mapping[tuple[str, str], str] = {
    ("kafka", "source.group_id_prefix"): "`group`: the prefix, a hyphen and the name of the table",
    ("redis", "lookup.cache.ttl"): "the same; without it keys are looked up for each batch",
    ("redis", "target"): "`key`, `list` or `hash`, with `target.key_prefix`",
    ("redis", "target.key_prefix"): "`key`, `list` or `hash`: the text in front of the column",
    ("redis", "target.key_column"): "`{column}` in `key`, `list` or `hash`",
    ("rabbitmq", "host"): "`url`", ("rabbitmq", "tls_config.enabled"): "`url`: `amqps://`",
    ("rabbitmq", "port"): "without effect for 5552 and 5551: streams are read with AMQP",
    ("nexmark", "runtime"): "`rows`: the rate times the seconds",
    ("iceberg", "namespace"): "`table`: the name in front of the point",
    ("iceberg", "table_name"): "`table`, in the namespace `default` without `namespace`",
    ("filesystem", "rolling_policy.inactivity_interval"): "`roll.interval`, if it is shorter",
    ("delta", "rolling_policy.inactivity_interval"): "`batch.interval`, if it is shorter",
    ("websocket", "subscription_messages.N"): "`messages`, in the order of the numbers",
}  # fmt: skip
"""Options that become a part of an option."""
_FORMATS: Mapping[str, str] = {
    "json": "`json`", "debezium_json": "`debezium_json`", "avro": "`avro`",
    "parquet": "`parquet`; of `delta` and `iceberg` the format of their files",
    "raw_string": "`raw`; `text` for lines", "raw_bytes": "`raw`",
    "protobuf": "the format `protobuf` with Penstock's options, also in `CREATE TABLE`",
}  # fmt: skip
_STATEMENTS: Mapping[str, str] = {
    "CREATE TABLE ... WITH": "a source, or a sink if an INSERT writes it",
    "CREATE TABLE without WITH": "a transform: the rows of all INSERTs",
    "CREATE TABLE ... AS SELECT": "a transform",
    "CREATE TABLE ... WITH without columns": "columns of the INSERTs, or of the source",
    "CREATE TEMPORARY TABLE": "a lookup table",
    "CREATE VIEW": "a transform",
    "INSERT INTO": "the input of a sink; columns by position",
    "SELECT": "a sink `print` with JSON",
    "SET updating_ttl": "the time after which unchanged keys of updating queries are removed",
    "GENERATED ALWAYS AS": "a transform that computes the column",
    "METADATA FROM": "`metadata` of the source",
    "WATERMARK FOR": "`watermark` of the source",
    "PARTITIONED BY": "`partition_by`; transforms with `iceberg`",
    "connection profile": "an entry of `connections`, named by `connection_profile`; "
    "`penstock convert` prints those of the web API",
    "connection table": "`CREATE TABLE`; `penstock convert` prints those of the web API",
    "UDF in Python": "`CREATE FUNCTION` with `arroyo_udf`",
    "UDF in Rust": "missing: there is no compiler; write the function in Python",
}
_SQL: Mapping[str, str] = {
    "tumble, hop, session": "windows of event time; a width need not be a multiple of the slide",
    "OVER": "also without windows, as an updating query",
    "joins of windows": "INNER, LEFT, RIGHT, FULL, SEMI, ANTI",
    "joins without windows": "also outer joins and joins of updating queries",
    "joins with lookup tables": "INNER, LEFT, SEMI, ANTI",
    "aggregates without windows": "updating queries; the sink has a primary key or `debezium_json`",
    "UNNEST": "several in a query, also in expressions",
    "DISTINCT ON": "the first row of each group; the order of the result is not kept",
    "->, ->>, ?": "the same",
    "row_time()": "the event time of the row",
    "ORDER BY, LIMIT": "in batches of input that ends",
}
_FUNCTIONS: Mapping[str, str] = {
    "scalar functions of DataFusion": "the same answers, or a difference in the table of functions",
    "aggregates of DataFusion": "the same answers, or a difference in the table of functions",
    "approx_distinct": "HyperLogLog++ with an error of about 1 %",
    "approx_percentile_cont, approx_median": "the same of up to 85 values; of more the value "
    "whose rank differs by at most 0.01 %, where DataFusion interpolates between centroids",
    "functions of JSON": "the same",
    "extract_json, extract_json_string, get_first_json_object": "the same",
    "multi_hash": "16 bytes, of another algorithm",
    "UDF of aggregates": "functions in Python that receive lists",
}


def rows() -> Iterator[Row]:
    """Yields the rows of the table."""
    for name, connector in CONNECTORS.items():
        yield from _of_connector(name, connector)
    for name, hint in MISSING.items():
        yield Row(f"connector `{name}`", "", f"missing: there is no client. {hint.capitalize()}")
    yield from _of_rules("every table", "", COMMON)
    for name, reading in _FORMATS.items():
        yield Row(f"format `{name}`", "", reading)
        prefix = f"{name}."
        found = {key: rule for key, rule in OF_FORMATS.items() if key.startswith(prefix)}
        yield from _of_rules(f"format `{name}`", name, found)
    for kind, readings in (("statement", _STATEMENTS), ("SQL", _SQL), ("functions", _FUNCTIONS)):
        for name, reading in readings.items():
            yield Row(f"{kind} `{name}`", "", reading)


def _of_connector(name: str, connector: Connector) -> Iterator[Row]:
    component = f"connector `{name}`"
    yield Row(component, "", f"`{connector.type}`")
    for option in _SAME.get(name, ()):
        yield Row(component, f"`{option}`", "the same")
    rules = {**connector.both, **connector.source, **connector.sink, **connector.of_format}
    for (owner, option), reading in _COMBINED.items():
        if owner == name and option not in rules:
            yield Row(component, f"`{option}`", reading)
    yield from _of_rules(component, name, rules)


def _of_rules(component: str, name: str, rules: Rules) -> Iterator[Row]:
    for option, rule in rules.items():
        yield Row(component, f"`{option}`", _COMBINED.get((name, option)) or _reading(option, rule))


def _reading(option: str, rule: Rule) -> str:
    if isinstance(rule, Unsupported):
        return f"missing: {rule.reason}. {_sentence(rule.hint)}"
    missing = [
        f"`{value}` is missing: {new.reason}"
        for value, new in rule.values.items()
        if isinstance(new, Unsupported)
    ]
    if rule.parts:
        target = ".".join(rule.parts)
        reading = "the same" if target == option else f"`{target}`"
    else:
        reading = f"accepted without effect: {reason(option) or 'it selects other options'}"
    return "; ".join([reading, *missing])


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

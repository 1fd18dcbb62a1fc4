"""Configurations of connectors in JSON as options of `CREATE TABLE`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode, SequenceNode

Options = dict[str, str]
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WRAPPERS = {
    "type", "connector_type", "source_type", "sink_type", "table_type", "connection", "lookup",
}  # fmt: skip
"""Parts of a path without a counterpart in the names of options."""
_PARTS = {
    "authentication": "auth", "schema_registry_enum": "schema_registry", "file_naming": "filename",
}  # fmt: skip
_MAPS = {
    "connection_properties": "client_configs", "client_configs": "client_configs",
    "storage_options": "storage",
}  # fmt: skip
_SOURCE = ("offset", "read_mode", "group_id", "group_id_prefix", "regex_pattern")
_SINK = ("commit_mode", "key_field", "timestamp_field", "retain", "version")
_FILES = {
    "compression_format": "source.compression",
    "rolling_policy.file_size_bytes": "rolling_policy.file_size",
    "rolling_policy.interval_seconds": "rolling_policy.interval",
    "rolling_policy.inactivity_seconds": "rolling_policy.inactivity_interval",
    "multipart.target_part_size_bytes": "multipart.target_part_size",
    "partitioning.shuffle_by_partition.enabled": "shuffle_by_partition.enabled",
}
_RENAMED: Mapping[str, str] = {
    **{name: f"source.{name}" for name in _SOURCE},
    **{name: f"sink.{name}" for name in _SINK},
    **_FILES,
    "value_subject": "value.subject",
    "records_per_batch": "sink.max_records_per_batch",
    "batch_max_buffer_size": "sink.max_bytes_per_batch",
    "batch_flush_interval_millis": "sink.flush_interval_millis",
    "addresses": "cluster.addresses",
    "catalog.url": "catalog.rest.url",
    "catalog.token": "catalog.rest.token",
}
_CONSUMER = (
    "ack_policy", "replay_policy", "ack_wait", "description", "filter_subjects",
    "sample_frequency", "num_replicas", "inactive_threshold", "rate_limit", "max_ack_pending",
    "max_deliver", "max_waiting", "max_batch", "max_bytes", "max_expires",
)  # fmt: skip
_REDIS = {"": "string", "list_": "list", "hash_": "hash"}
"""The targets of Redis by the prefix of their keys."""
_ENUMERATIONS = {"qos", "ack_policy", "replay_policy", "target.operation"}
"""Options whose values are in camel case."""


def settings(connector: str, config: MappingNode) -> Options:
    """Returns the options of a configuration. Raises SpecError."""
    found: Options = {}
    for path, node in _leaves(config, ()):
        for name, value in _options(connector, path, node):
            is_name = name.removeprefix("consumer.") in _ENUMERATIONS
            found[name] = _snake(value) if is_name else value
    if connector in ("kafka", "nats"):
        _add_authentication(found)
    return found


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yields the values of a tree with their paths, whose parts are as in the options."""
    if not isinstance(node, MappingNode):
        yield path, node
        return
    for entry in node.entries:
        name = _snake(entry.name)
        is_wrapper = name in _WRAPPERS and not (path == ("catalog",) and name == "type")
        if is_wrapper and not isinstance(entry.value, MappingNode):
            continue
        part = () if is_wrapper else (_PARTS.get(name, name),)
        if name in _MAPS:
            yield (*path, *part), entry.value
        else:
            yield from _leaves(entry.value, (*path, *part))


def _options(
    connector: str, path: tuple[str, ...], node: Node
) -> Iterator[tuple[str, str]]:  # fmt: skip
    name = ".".join(path)
    if path and path[-1] in _MAPS and isinstance(node, MappingNode):
        yield from _of_map(_MAPS[path[-1]], node)
    elif isinstance(node, ScalarNode) and node.value is None:
        return
    elif connector == "redis" and path[0] == "target":
        yield from _of_target(path[-1], _text(node))
    elif connector == "nats" and name in _CONSUMER:
        yield f"consumer.{name}", _text(node)
    elif name == "subscription_messages" and isinstance(node, SequenceNode):
        yield from ((f"{name}.{i}", _text(item)) for i, item in enumerate(node.items))
    elif connector == "iceberg" and name == "partitioning.fields":
        return
    elif name.endswith("_seconds"):
        yield _RENAMED.get(name, name), f"{_text(node)} seconds"
    else:
        yield _RENAMED.get(name, name), _text(node)


def _of_map(name: str, node: MappingNode) -> Iterator[tuple[str, str]]:
    pairs = [(entry.name, _text(entry.value)) for entry in node.entries]
    if name == "storage":
        yield from ((f"storage.{key}", value) for key, value in pairs)
    elif pairs:
        yield name, ",".join(f"{key}={value}" for key, value in pairs)


def _of_target(key: str, value: str) -> Iterator[tuple[str, str]]:
    prefix = next((each for each in ("list_", "hash_") if key.startswith(each)), "")
    name = {"list_prefix": "key_prefix"}.get(key, key.removeprefix(prefix))
    kind = "list" if name in ("max_length", "operation") else _REDIS[prefix]
    if name in ("key_prefix", "field_column", "operation"):
        yield "target", kind
    yield f"target.{name}", value


def _add_authentication(options: Options) -> None:
    """Adds the type of the authentication, which the names of its options show."""
    if "auth.region" in options:
        options["auth.type"] = "aws_msk_iam"
    elif "auth.mechanism" in options:
        options["auth.type"] = "sasl"
    elif "auth.jwt" in options:
        options["auth.type"] = "jwt"
    elif "auth.username" in options:
        options["auth.type"] = "credentials"


def _text(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return ",".join(map(_text, node.items))
    if isinstance(node, MappingNode):
        raise SpecError(
            "expected a value, found a map", code="wrong-type", where=node.location
        )  # fmt: skip
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return node.written


def _snake(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()


def text_of(node: MappingNode, name: str) -> str:
    """Returns a text that an object needs. Raises SpecError."""
    return written(node, name, str)


def written(node: MappingNode, name: str, kind: type[str] | type[int]) -> str:
    """Returns a value that an object needs, as written. Raises SpecError."""
    value = node.get(name)
    if not isinstance(value, ScalarNode) or not isinstance(value.value, kind):
        noun = "a text" if kind is str else "a number"
        raise SpecError(
            f'expected "{name}", {noun}', code="missing-option", where=node.location,
            hint=did_you_mean(name, node.names()),
        )  # fmt: skip
    return value.written

"""Answers of `/api/v1/connection_tables` and `/api/v1/connection_profiles`.

Connection tables become the statements of a script of Arroyo, with the options of their profile.
Connection profiles become `connections` of a YAML file, which tables name by `connection_profile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.core.errors import SpecError, raise_all
from penstock.core.names import quote_standard_name, standard_literal
from penstock.spec.dialects.arroyo.connectors import CONNECTORS, MISSING
from penstock.spec.dialects.arroyo.exports.columns import columns
from penstock.spec.dialects.arroyo.exports.settings import Options, settings, text_of
from penstock.spec.documents.files import read_text
from penstock.spec.script.document import parse_valid_part
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode, SequenceNode
from penstock.spec.yaml.parse import read_document
from penstock.spec.yaml.writer import to_data
from penstock.spec.yaml.writer import to_text as to_yaml

_MARK = re.compile(r'\A\s*\{(?=.*"connector"\s*:)(?=.*"config"\s*:)', re.DOTALL)
_LINES = ",\n    "
_SUBJECTS = {"kafka": "topic", "confluent": "topic", "mqtt": "topic", "rabbitmq": "stream"}
"""The option of a table that selects the connector."""
_OF_TABLE = ("connection", "schema", "start", "topic", "stream")
"""Options that a connection does not have."""


def is_export(path: str) -> bool:
    """Returns whether a file is such an answer, or one object of it."""
    if Path(path).suffix.lower() != ".json":
        return False
    try:
        return bool(_MARK.match(read_text(Path(path))))
    except SpecError:
        return False


def to_text(path: str) -> str:
    """Returns the statements or the connections of a file. Raises SpecError."""
    document = read_document(path)
    raise_all([*document.errors])
    root = document.root
    assert isinstance(root, MappingNode)
    data = root.get("data")
    found: Sequence[Node] = data.items if isinstance(data, SequenceNode) else [root]
    objects = [each for each in found if isinstance(each, MappingNode)]
    profiles = [each for each in objects if each.get("table_type") is None]
    if profiles and len(profiles) == len(objects):
        return to_yaml({"connections": dict(map(_connection, profiles))})
    return "\n".join(map(_statement, objects))


def _statement(table: MappingNode) -> str:
    """Returns `CREATE TABLE` of a connection table."""
    options = {"connector": _connector(table), "type": text_of(table, "table_type")}
    profile = table.get("connection_profile")
    if isinstance(profile, MappingNode):
        options |= _settings(profile)
    options |= _with_clients(_settings(table), options)
    schema = table.get("schema")
    if isinstance(schema, MappingNode):
        options |= dict(_format(schema))
    is_lookup = options["type"] == "lookup"
    found = [*columns(schema)] if isinstance(schema, MappingNode) else []
    head = f"CREATE {'TEMPORARY ' * is_lookup}TABLE {quote_standard_name(text_of(table, 'name'))} "
    head += f"(\n    {_LINES.join(found)}\n) " if found else ""
    return f"{head}WITH (\n    {_with(options)}\n){_partitions(table)};\n"


def _with_clients(options: Options, profile: Options) -> Options:
    """Returns the options of a table with the settings of clients of its profile."""
    name = "client_configs"
    both = [each[name] for each in (profile, options) if name in each]
    return {**options, name: ",".join(both)} if both else options


def _with(options: Options) -> str:
    return _LINES.join(
        f"{standard_literal(name)} = {standard_literal(text)}" for name, text in options.items()
    )


def _partitions(table: MappingNode) -> str:
    """Returns the clause `PARTITIONED BY` of a table of Iceberg."""
    node: Node | None = table
    for name in ("config", "type", "partitioning", "fields"):
        inner = node.get(name) if isinstance(node, MappingNode) else None
        node = node if inner is None and name == "type" else inner
    if not isinstance(node, SequenceNode) or _connector(table) != "iceberg":
        return ""
    parts = []
    for item in node.items:
        assert isinstance(item, MappingNode)
        transform, argument = text_of(item, "transform"), item.get("arg0")
        arguments = [quote_standard_name(text_of(item, "field"))]
        arguments += [argument.written] if isinstance(argument, ScalarNode) else []
        parts.append(f"{transform}({', '.join(arguments)})")
    return f" PARTITIONED BY ({', '.join(parts)})" if parts else ""


def _format(schema: MappingNode) -> Iterator[tuple[str, str]]:
    """Yields the options of the format, of its bad data and of its frames."""
    node = schema.get("format")
    if isinstance(node, MappingNode):
        kind = text_of(node, "type")
        flags = {each.name: each.value for each in node.entries if each.name != "type"}
        debezium = flags.pop("debezium", None)
        is_debezium = isinstance(debezium, ScalarNode) and debezium.value is True
        yield "format", "debezium_json" if is_debezium else kind
        for name, value in flags.items():
            if name in ("schema_id", "reader_schema", "compiled_schema"):
                continue
            if isinstance(value, ScalarNode) and value.value not in (None, False):
                option = "row_group_size" if name == "row_group_bytes" else name
                text = "true" if value.value is True else value.written
                if (option, text) != ("compression", "uncompressed"):
                    yield f"{kind}.{option}", text
    for name, key in (("bad_data", "behavior"), ("framing", "method")):
        part = schema.get(name)
        if isinstance(part, MappingNode):
            yield name, text_of(part, key)
            length = part.get("max_line_length")
            if isinstance(length, ScalarNode) and length.value is not None:
                yield "framing.newline.max_length", length.written


def _settings(node: MappingNode) -> Options:
    config = node.get("config")
    return settings(_connector(node), config) if isinstance(config, MappingNode) else {}


def _connector(node: MappingNode) -> str:
    name = text_of(node, "connector")
    if name not in CONNECTORS:
        raise SpecError(
            f'the connector "{name}" of Arroyo has no counterpart', code="unknown-type",
            where=node.get("connector").location,  # type: ignore[union-attr]
            hint=MISSING.get(name),
        )  # fmt: skip
    return name


def _connection(profile: MappingNode) -> tuple[str, dict[str, Any]]:
    """Returns the name and the options of a connection."""
    connector = _connector(profile)
    options = {"connector": connector, "connection_profile": "profile"}
    if connector in _SUBJECTS:
        options[_SUBJECTS[connector]] = "x"
    options |= _settings(profile)
    statement = f"CREATE TABLE profile (x TEXT) WITH ({_with(options)});"
    script = parse_valid_part(statement + "SELECT x FROM profile;", "profile", Path.cwd())
    raise_all([*script.errors])
    sources = script.root.get("sources") if isinstance(script.root, MappingNode) else None
    source = sources.get("profile") if isinstance(sources, MappingNode) else None
    assert source is not None
    found: dict[str, Any] = to_data(source)
    plain = {key: value for key, value in found.items() if key not in _OF_TABLE}
    return text_of(profile, "name"), plain

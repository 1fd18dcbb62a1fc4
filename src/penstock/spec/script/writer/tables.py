"""Sources and sinks as `CREATE TABLE`, and inputs of sinks as `INSERT INTO`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from penstock.core.text import did_you_mean
from penstock.spec.script.writer.columns import (
    column_lines,
    idle_of,
    key_line,
    metadata_lines,
    watermark_line,
)
from penstock.spec.script.writer.comparison import query_text
from penstock.spec.script.writer.values import (
    Statement,
    assignments,
    identifier,
    literal,
    texts,
    unsupported_error,
)
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

_WIDTH = 90


def source_table(source: Entry, node: MappingNode) -> Statement:
    """Returns a source or a lookup table. Raises SpecError.

    A declaration that has no clause, such as metadata without types, is an option.
    """
    options = {entry.name: entry.value for entry in node.entries}
    items: list[str] = []
    schema = options.get("schema")
    if schema is not None and (lines := column_lines(schema)):
        items += lines
        del options["schema"]
    if lines := metadata_lines(options.get("metadata"), options.get("metadata_types")):
        items += lines
        del options["metadata"], options["metadata_types"]
    if line := key_line(options.get("primary_key")):
        items.append(line)
        del options["primary_key"]
    if line := watermark_line(options.get("watermark")):
        items.append(line)
        if idle := idle_of(options.pop("watermark")):
            options["idle"] = idle
    lookup = options.get("lookup")
    is_lookup = isinstance(lookup, ScalarNode) and lookup.value is True
    if is_lookup:
        del options["lookup"]
    kind = "TEMPORARY TABLE" if is_lookup else "TABLE"
    return Statement(_create(kind, source, items, options), source.key.location)


def dynamic_table(table: Entry, node: MappingNode) -> Statement:
    """Returns a dynamic table with its query. Raises SpecError."""
    options = {entry.name: entry.value for entry in node.entries}
    query, storage = options.pop("sql", None), options.get("storage")
    if isinstance(storage, MappingNode):
        entries = tuple(entry for entry in storage.entries if entry.name != "connection")
        options["storage"] = replace(storage, entries=entries)
    text = _create("TABLE", table, (), options)
    if isinstance(query, ScalarNode):
        text = f"{text.removesuffix(';')} AS\n{query_text(str(query.value))};"
    return Statement(text, table.key.location)


def sink_statements(sink: Entry, node: MappingNode, nodes: Sequence[str]) -> Iterator[Statement]:
    """Yields the table of a sink, and the INSERT of its input. Raises SpecError.

    `nodes` are the names of sources and transforms.
    """
    options = {entry.name: entry.value for entry in node.entries}
    inputs = options.pop("from", None)
    names = texts(inputs)
    if names is None or len(names) != 1:
        place = node.entry("from")
        raise unsupported_error(
            f'expected the name of one node that the sink "{sink.name}" reads',
            place.key.location if place else sink.key.location,
            "write a transform of type sql with UNION ALL, and its name",
        )
    if inputs is not None and names[0] not in nodes:
        raise unsupported_error(
            f'no source or transform is named "{names[0]}"',
            inputs.location,
            did_you_mean(names[0], nodes) or "run `penstock check`",
        )
    items = []
    if line := key_line(options.get("primary_key")):
        items.append(line)
        del options["primary_key"]
    partitions = options.get("partition_by")
    divided = texts(partitions) if isinstance(partitions, SequenceNode) else None
    if divided:
        del options["partition_by"]
    yield Statement(_create("TABLE", sink, items, options, divided or ()), sink.key.location)
    insert = f"INSERT INTO {identifier(sink.name)} SELECT * FROM {identifier(names[0])};"
    yield Statement(insert, sink.key.location)


def _create(
    kind: str,
    table: Entry,
    items: Sequence[str],
    options: dict[str, Node],
    divided: Sequence[str] = (),
) -> str:
    """Returns a CREATE TABLE. `divided` are the columns of PARTITIONED BY."""
    text = f"CREATE {kind} {identifier(table.name)} "
    if items:
        text += "(\n    " + ",\n    ".join(items) + "\n) "
    if divided:
        text += f"PARTITIONED BY ({', '.join(map(identifier, divided))}) "
    type_ = options.pop("type", None)
    if type_ is None:
        raise unsupported_error(
            f'expected the type of "{table.name}"', table.key.location, "add a type"
        )
    options.pop("connection", None)
    lines = [f"connector = {literal(type_)}"]
    for name, value in sorted(options.items(), key=lambda each: each[0] != "format"):
        lines += [f"{option} = {each}" for option, each in _option(name, value)]
    if len(text) + len(", ".join(lines)) < _WIDTH and "\n" not in text:
        return f"{text}WITH ({', '.join(lines)});"
    return text + "WITH (\n    " + ",\n    ".join(lines) + "\n);"


def _option(name: str, value: Node) -> Iterator[tuple[str, str]]:
    """Yields the parts of an option. A format with options is its name, and then the options."""
    if name != "format" or not isinstance(value, MappingNode) or len(value.entries) < 2:
        yield from assignments([name], value)
        return
    for entry in value.entries:
        path = [name] if entry.name == "type" else [name, entry.name]
        yield from assignments(path, entry.value)

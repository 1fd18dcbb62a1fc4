"""Columns of a pipeline as the columns of `CREATE TABLE`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from penstock.core.errors import SpecError
from penstock.spec.script.reader import TokenReader, spark_type
from penstock.spec.script.tokens import Text, tokenize
from penstock.spec.script.writer.values import identifier, text_literal, texts
from penstock.spec.tree.nodes import File, MappingNode, Node, ScalarNode

_NOT_NULL = re.compile(r"\s+not\s+null\s*\Z", re.IGNORECASE)
_CLAUSE = re.compile(r"\b(?:comment|default|generated|metadata|primary)\b", re.IGNORECASE)


def split_columns(schema: Any) -> dict[str, str] | None:
    """Returns the types of a schema by column; None for a text that is no list of columns."""
    if isinstance(schema, dict):
        types = {str(name): type_ for name, type_ in schema.items()}
    elif isinstance(schema, str) and "${" not in schema:
        try:
            types = _read(schema)
        except SpecError:
            return None
    else:
        return None
    if not types or not all(isinstance(type_, str) for type_ in types.values()):
        return None
    return {name: _NOT_NULL.sub(" NOT NULL", type_).strip() for name, type_ in types.items()}


def _read(schema: str) -> dict[str, str]:
    reader = _reader(schema)
    types: dict[str, str] = {}
    while not reader.ended:
        name = reader.name("a column")
        reader.accept(":")
        types[name.value] = reader.type((",",)).value
        if not reader.ended:
            reader.expect(",")
    return types


def _reader(text: str) -> TokenReader:
    file = File("", text, Path())
    return TokenReader(file, tokenize(file))


def column_lines(schema: Node) -> list[str] | None:
    """Returns columns as lines; None if a table cannot declare them with their types."""
    columns = split_columns(schema.data())
    if columns is None or any(map(_is_changed, columns.values())):
        return None
    return [f"{identifier(name)} {type_}" for name, type_ in columns.items()]


def _is_changed(type_: str) -> bool:
    """Returns whether a table would read the type as another one, or as a further clause."""
    plain = type_.removesuffix(" NOT NULL")
    if "${" in type_ or _CLAUSE.search(plain) is not None:
        return True
    try:
        return spark_type(_reader(plain), Text(plain, 0, len(plain))).value != plain
    except SpecError:
        return True


def metadata_lines(metadata: Node | None, types: Node | None) -> list[str] | None:
    """Returns metadata columns as lines; None unless each one has a type."""
    if not isinstance(metadata, MappingNode) or not isinstance(types, MappingNode):
        return None
    if set(metadata.names()) != set(types.names()):
        return None
    return [
        f"{identifier(name)} {types.data()[name]} METADATA FROM {text_literal(str(origin))}"
        for name, origin in metadata.data().items()
    ]


def key_line(key: Node | None) -> str | None:
    """Returns the constraint of a primary key; None for a value that is no list of names."""
    names = texts(key)
    return f"PRIMARY KEY ({', '.join(map(identifier, names))})" if names else None


def watermark_line(watermark: Node | None) -> str | None:
    """Returns a watermark with a delay or a bound; None for another one."""
    if not isinstance(watermark, MappingNode):
        return None
    values = {name: value for name, value in watermark.data().items() if name != "idle"}
    column = values.pop("column", None)
    if not isinstance(column, str) or "${" in column or len(values) > 1:
        return None
    name = identifier(column)
    if not values:
        return f"WATERMARK FOR {name}"
    [(option, value)] = values.items()
    if not isinstance(value, str) or value.strip().replace(".", "", 1).isdecimal():
        return None
    if option == "delay":
        return f"WATERMARK FOR {name} AS {name} - INTERVAL {text_literal(value)}"
    return f"WATERMARK FOR {name} AS {value.strip()}" if option == "bound" else None


def idle_of(watermark: Node | None) -> Node | None:
    """Returns the idle time of a watermark, which is an option of a table."""
    idle = watermark.get("idle") if isinstance(watermark, MappingNode) else None
    return idle if isinstance(idle, ScalarNode) else None

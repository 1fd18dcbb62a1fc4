"""The columns of a schema in JSON as those of `CREATE TABLE`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import SpecError
from penstock.core.names import quote_standard_name, standard_literal
from penstock.core.text import did_you_mean
from penstock.spec.dialects.arroyo.exports.settings import text_of, written
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode, SequenceNode

_TYPES = {
    "int32": "INT", "int64": "BIGINT", "uint32": "INT UNSIGNED", "uint64": "BIGINT UNSIGNED",
    "float32": "FLOAT", "f32": "FLOAT", "float64": "DOUBLE", "f64": "DOUBLE", "bool": "BOOLEAN",
    "string": "TEXT", "utf8": "TEXT", "bytes": "BYTEA", "binary": "BYTEA", "json": "JSON",
}  # fmt: skip
_NESTED = ("decimal128", "timestamp", "struct", "list")


def columns(schema: MappingNode) -> Iterator[str]:
    """Yields the columns of a table, and its primary key. Raises SpecError."""
    for field in _items(schema.get("fields")):
        text = f"{quote_standard_name(text_of(field, 'name'))} {_type(field)}"
        if _is_true(field.get("required")):
            text += " NOT NULL"
        key = field.get("metadata_key")
        if isinstance(key, ScalarNode) and key.value is not None:
            text += f" METADATA FROM {standard_literal(key.written)}"
        yield text
    keys = schema.get("primary_keys")
    if isinstance(keys, SequenceNode) and keys.items:
        names = sorted(item.written for item in keys.items if isinstance(item, ScalarNode))
        yield f"PRIMARY KEY ({', '.join(map(quote_standard_name, names))})"


def _type(field: MappingNode) -> str:
    name = text_of(field, "type")
    if name == "decimal128":
        precision, scale = (written(field, part, int) for part in ("precision", "scale"))
        return f"DECIMAL({precision}, {scale})"
    if name == "timestamp":
        return "TIMESTAMP"
    if name == "struct":
        fields = [
            f"{quote_standard_name(text_of(each, 'name'))} {_type(each)}"
            for each in _items(field.get("fields"))
        ]
        return f"STRUCT<{', '.join(fields)}>"
    if name == "list" and isinstance(items := field.get("items"), MappingNode):
        return f"{_type(items)}[]"
    if name not in _TYPES:
        raise SpecError(
            f'unknown type "{name}"', code="unknown-type", where=field.get("type").location,  # type: ignore[union-attr]
            hint=did_you_mean(name, [*_TYPES, *_NESTED]),
        )  # fmt: skip
    return _TYPES[name]


def _items(node: Node | None) -> Iterator[MappingNode]:
    if isinstance(node, SequenceNode):
        yield from (item for item in node.items if isinstance(item, MappingNode))


def _is_true(node: Node | None) -> bool:
    return isinstance(node, ScalarNode) and node.value is True

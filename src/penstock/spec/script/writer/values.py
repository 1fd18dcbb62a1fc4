"""Names and values of a pipeline as the text of a SQL script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.names import quote_name
from penstock.spec.tree.nodes import MappingNode, Node, ScalarNode, SequenceNode

CODE = "not-in-sql"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Statement(NamedTuple):
    """A statement, and the location of the part of the pipeline that it states."""

    text: str
    origin: Location


def unsupported_error(message: str, where: Location, hint: str | None = None) -> SpecError:
    """Returns the error of a construct without a statement."""
    return SpecError(message, code=CODE, where=where, hint=hint or keep_in_yaml_hint("the node"))


def keep_in_yaml_hint(part: str) -> str:
    """Returns the hint that a part of the pipeline can remain in YAML."""
    return f"keep {part} in a YAML file beside the script: `penstock run shop.sql rest.yaml`"


def identifier(name: str) -> str:
    """Returns a name, quoted if it is no plain word."""
    return name if _WORD.match(name) else quote_name(name)


def dotted(path: Sequence[str]) -> str:
    """Returns a dotted name."""
    return ".".join(map(identifier, path))


def text_literal(text: str) -> str:
    """Returns a text in quotes. Expressions such as `${NAME}` remain."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal(node: Node) -> str:
    """Returns a scalar or a list of scalars as a value. Raises SpecError."""
    if isinstance(node, ScalarNode):
        return _scalar(node.value)
    if isinstance(node, SequenceNode):
        for item in node.items:
            if not isinstance(item, ScalarNode):
                raise unsupported_error(
                    "a list in a SQL script has only texts, numbers, TRUE and FALSE", item.location
                )
        return f"[{', '.join(literal(item) for item in node.items)}]"
    raise unsupported_error(
        "a SQL script has no empty map", node.location, "remove it, or add an option"
    )


def assignments(path: Sequence[str], node: Node) -> Iterator[tuple[str, str]]:
    """Yields the dotted names and the values of an option. Raises SpecError."""
    if not isinstance(node, MappingNode) or not node.entries:
        yield dotted(path), literal(node)
        return
    for entry in node.entries:
        yield from assignments([*path, entry.name], entry.value)


def texts(node: Node | None) -> list[str] | None:
    """Returns a name or a list of names as a list; None for another value."""
    items = node.items if isinstance(node, SequenceNode) else (node,)
    names = [
        str.__str__(item.value)
        for item in items
        if isinstance(item, ScalarNode) and isinstance(item.value, str) and "${" not in item.value
    ]
    return names if names and len(names) == len(items) else None


def _scalar(value: str | int | float | bool | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return text_literal(str.__str__(value)) if isinstance(value, str) else repr(value)

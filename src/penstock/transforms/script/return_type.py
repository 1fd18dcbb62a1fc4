"""The columns of the type that a function in TypeScript returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.sdk.columns.ddl import arrow_schema
from penstock.transforms.script.syntax import child, error_at, parse

if TYPE_CHECKING:
    from ast_grep_py import SgNode

    from penstock.transforms.sandbox.child import CodeError

_NOTHING = {"null", "undefined", "void", "never"}
_ANY = {"any", "unknown", "object"}
_LISTS = {"Array", "ReadonlyArray", "Set", "ReadonlySet"}
_MAPS = {"Record", "Map", "ReadonlyMap"}
_SAME = {"Readonly", "Partial", "Required"}
_COLUMNS = {
    "string": "STRING", "number": "DOUBLE", "boolean": "BOOLEAN", "bigint": "BIGINT",
    "Date": "TIMESTAMP", "Uint8Array": "BINARY", "ArrayBuffer": "BINARY", "any": "VARIANT",
}  # fmt: skip


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_) or pa.types.is_decimal(type_) or pa.types.is_temporal(type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_date(type_))


_KEEPS: Mapping[str, Callable[[pa.DataType], bool]] = {
    "string": _is_text, "number": _is_number, "boolean": pa.types.is_boolean,
    "bigint": lambda type_: pa.types.is_integer(type_) or pa.types.is_decimal(type_),
    "Date": _is_time, "Uint8Array": pa.types.is_binary, "ArrayBuffer": pa.types.is_binary,
    "any": lambda type_: True,
}  # fmt: skip
"""The types of input columns that a property of the same name and a type of TypeScript keeps."""


def returned_columns(code: str, function: str, input_: pa.Schema) -> pa.Schema | None:
    """Returns the columns of the type that a function returns, or None without such a type.

    A property with the name of an input column has the type of the column, if values of the
    property fit it. Raises CodeError for a type that has no columns.
    """
    root = parse(code)
    annotation = next(_return_types(root, function), None)
    if annotation is None:
        return None
    types = _Types({_name(node): node for node in _declarations(root)})
    row = types.row(annotation)
    if row is None:
        return None
    known = {field.name: field for field in input_}
    return pa.schema([types.column(each, known.get(each.name)) for each in types.properties(row)])


def _return_types(root: SgNode, function: str) -> Iterator[SgNode]:
    for kind in ("function_declaration", "variable_declarator"):
        for node in root.find_all(kind=kind):
            if _name(node) != function:
                continue
            value = node.field("value") if kind == "variable_declarator" else node
            annotation = value.field("return_type") if value is not None else None
            if annotation is not None and annotation.kind() == "type_annotation":
                yield _inner(annotation)


def _declarations(root: SgNode) -> Iterator[SgNode]:
    for kind in ("interface_declaration", "type_alias_declaration"):
        yield from root.find_all(kind=kind)


def _name(node: SgNode) -> str:
    name = node.field("name")
    return name.text() if name is not None else ""


def _inner(node: SgNode) -> SgNode:
    """Returns the only type within a node."""
    return next(each for each in node.children() if each.is_named())


@dataclass(frozen=True)
class _Property:
    """A property of a row: its name and its type."""

    name: str
    type: SgNode


@dataclass(frozen=True)
class _Types:
    """The types that a code declares, by name."""

    declared: Mapping[str, SgNode]

    def row(self, node: SgNode) -> SgNode | None:
        """Returns the type of one row in a return type, or None for any value."""
        members = list(self._members(node))
        if len(members) > 1:
            raise _unknown(members[1], "a row has one type")
        if not members or members[0].text() in _ANY:
            return None
        found = members[0]
        item = self._item(found)
        return self.row(item) if item is not None else found

    def properties(self, node: SgNode, depth: int = 0) -> Iterator[_Property]:
        """Yields the properties of an object. Raises CodeError for another type."""
        node = self._resolved(node)
        kind = node.kind()
        if depth > 50:
            raise _unknown(node, "a type refers to itself")
        if kind == "interface_declaration":
            bases = child(node, "extends_type_clause")
            for base in bases.children() if bases is not None else []:
                if base.is_named():
                    yield from self.properties(base, depth + 1)
            yield from self._body(node.field("body") or node)
        elif kind == "object_type":
            yield from self._body(node)
        elif kind == "intersection_type":
            for part in node.children():
                if part.is_named():
                    yield from self.properties(part, depth + 1)
        elif kind == "generic_type" and self._generic(node)[0] in _SAME:
            yield from self.properties(self._generic(node)[1][0], depth + 1)
        else:
            raise _unknown(node, f"{node.text()[:50]} is not an object")

    def column(self, property_: _Property, known: pa.Field | None, depth: int = 0) -> pa.Field:
        """Returns the column of a property. `known` is the input column of its name."""
        if depth > 50:
            raise _unknown(property_.type, "a type refers to itself")
        members = list(self._members(property_.type))
        kinds = {self._scalar(each) for each in members}
        if kinds == {"number", "bigint"}:
            kinds = {"bigint"}
        if not members or len(kinds) > 1 or (None in kinds and len(members) > 1):
            raise _unknown(property_.type, "a column has one type")
        (scalar,) = kinds
        if scalar is None:
            return self._nested(property_.name, members[0], known, depth)
        if known is not None and _KEEPS[scalar](known.type):
            return known.with_name(property_.name).with_nullable(True)
        return arrow_schema({property_.name: _COLUMNS[scalar]}).field(0)

    def _nested(self, name: str, node: SgNode, known: pa.Field | None, depth: int) -> pa.Field:
        type_ = known.type if known is not None else None
        item = self._item(node)
        if item is not None:
            inner = type_.value_field if type_ is not None and pa.types.is_list(type_) else None
            element = self.column(_Property("element", item), inner, depth + 1)
            return pa.field(name, pa.list_(element))
        generic, arguments = self._generic(node)
        if generic in _MAPS and len(arguments) == 2:
            inner = type_.item_field if type_ is not None and pa.types.is_map(type_) else None
            value = self.column(_Property("value", arguments[1]), inner, depth + 1)
            return pa.field(name, pa.map_(pa.string(), value))
        fields = list(type_) if type_ is not None and pa.types.is_struct(type_) else []
        known_fields = {field.name: field for field in fields}
        return pa.field(
            name,
            pa.struct(
                [
                    self.column(each, known_fields.get(each.name), depth + 1)
                    for each in self.properties(node, depth + 1)
                ]
            ),
        )

    def _members(self, node: SgNode) -> Iterator[SgNode]:
        """Yields the members of a union, without null and undefined."""
        node = self._resolved(node)
        if node.kind() == "union_type":
            for part in node.children():
                if part.is_named():
                    yield from self._members(part)
        elif node.text() not in _NOTHING:
            yield node

    def _resolved(self, node: SgNode) -> SgNode:
        """Returns a type without brackets and `readonly`, and the declaration of a name."""
        for _ in range(50):
            if node.kind() in {"parenthesized_type", "readonly_type"}:
                node = _inner(node)
            elif node.kind() == "type_identifier" and node.text() in self.declared:
                node = self.declared[node.text()]
            elif node.kind() == "type_alias_declaration":
                value = node.field("value")
                assert value is not None
                node = value
            else:
                return node
        raise _unknown(node, "a type refers to itself")

    def _item(self, node: SgNode) -> SgNode | None:
        """Returns the type of the items of an array, or None for another type."""
        if node.kind() == "array_type":
            return _inner(node)
        generic, arguments = self._generic(node)
        return arguments[0] if generic in _LISTS and arguments else None

    def _generic(self, node: SgNode) -> tuple[str, list[SgNode]]:
        if node.kind() != "generic_type":
            return "", []
        arguments = child(node, "type_arguments")
        parts = arguments.children() if arguments is not None else []
        return _name(node), [part for part in parts if part.is_named()]

    def _scalar(self, node: SgNode) -> str | None:
        """Returns the key in `_COLUMNS` of a type, or None for a nested one."""
        text = node.text()
        if text in _ANY:
            return "any"
        if node.kind() == "literal_type":
            kind = _inner(node).kind()
            return {"true": "boolean", "false": "boolean", "string": "string"}.get(kind, "number")
        if node.kind() == "template_literal_type":
            return "string"
        return text if text in _COLUMNS else None

    def _body(self, body: SgNode) -> Iterator[_Property]:
        for member in body.children():
            if member.kind() == "property_signature":
                annotation = child(member, "type_annotation")
                if annotation is None:
                    raise _unknown(member, "a property has no type")
                yield _Property(_name(member).strip("'\""), _inner(annotation))
            elif member.kind() in {"index_signature", "method_signature"}:
                raise _unknown(member, "a row has named properties with values")


def _unknown(node: SgNode, message: str) -> CodeError:
    return error_at(node, f"{message}; declare the columns in schema")

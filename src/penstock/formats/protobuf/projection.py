"""Messages reduced to their columns, in the form that the native decoder and encoder read.

A projection has only the fields of the columns. Fields of another name, and with them messages
that are recursive or have no type of a column, are unknown fields, which are ignored. Syntax and
features of the file (editions) become those of proto2, or of proto3 for fields without presence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.formats.protobuf.groups import Fields, Nested
from penstock.formats.protobuf.times import TIMES, mark
from penstock.sdk.columns.type_names import is_list

_NATIVE = {
    "google.protobuf": {
        "Timestamp", "Duration", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value",
        "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue",
    },
    "google.type": {"Date", "TimeOfDay"},
}  # fmt: skip
"""Messages for which the native library has types."""
_PACKAGE = "penstock"
_GROUP, _MESSAGE, _ENUM = 10, 11, 14
_OPTIONAL, _REPEATED = 1, 3


@dataclass(frozen=True)
class Projection:
    """A message with the fields of columns, and its fields that are groups or contain groups."""

    descriptor: Any
    groups: Fields


def project(message: Any, columns: pa.Schema | None, *, native_times: bool) -> Projection:
    """Returns the projection of a message to columns; to all its fields without columns.

    With `native_times` the native library converts messages of times. Otherwise they have marked
    fields (see `times`). Raises PlanError if a field of the projection is recursive.
    """
    projector = _Projector("proto2", native_times)
    projection = projector.project(message, columns)
    if not projector.has_defaults:
        return projection
    return _Projector("proto3", native_times).project(message, columns)


class _Projector:
    """A projector to a syntax. `has_defaults` is set at a field that proto2 does not have.

    Enums are in a file of their own, whose syntax allows a first value other than 0.
    """

    def __init__(self, syntax: str, native_times: bool) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        self._enums = FileDescriptorProto(
            name="penstock/enums.proto", package=_PACKAGE, syntax="proto2"
        )
        self._file = FileDescriptorProto(
            name="penstock/message.proto", package=_PACKAGE, syntax=syntax,
            dependency=[self._enums.name],
        )  # fmt: skip
        self.has_defaults = False
        self._native_times = native_times
        self._imported: dict[str, Any] = {}
        self._enum_names: dict[str, str] = {}

    def project(self, message: Any, columns: pa.Schema | None) -> Projection:
        from google.protobuf.descriptor_pool import DescriptorPool

        root = self._file.message_type.add(name="Row")
        declared = None if columns is None else pa.struct(list(columns))
        groups = self._add_fields(root, f".{_PACKAGE}.Row", message, declared, ())
        self._file.dependency.extend(self._imported)
        pool = DescriptorPool()
        for file in (*self._imported.values(), self._enums, self._file):
            pool.Add(file)
        return Projection(pool.FindMessageTypeByName(f"{_PACKAGE}.Row"), groups)

    def _add_fields(
        self, target: Any, path: str, message: Any, declared: pa.DataType | None,
        within: tuple[str, ...],
    ) -> dict[int, Nested]:  # fmt: skip
        if declared is None and message.full_name in within:
            raise _recursive(message)
        types = _types_by_name(declared)
        inside = (*within, message.full_name) if declared is None else ()
        fields = [f for f in message.fields if types is None or f.name.casefold() in types]
        oneofs = [f.containing_oneof for f in fields if _in_oneof(f)]
        names = list(dict.fromkeys(oneof.name for oneof in oneofs))
        for name in names:
            target.oneof_decl.add(name=name)
        repeated = _repeated_fields(message)
        groups: dict[int, Nested] = {}
        for field in fields:
            type_ = None if types is None else types[field.name.casefold()]
            nested = self._add_field(target, path, field, field.number in repeated, type_, inside)
            if nested is not None:
                groups[field.number] = nested
            added = target.field[-1]
            if _in_oneof(field):
                added.oneof_index = names.index(field.containing_oneof.name)
            elif field.number in repeated or field.type in (_GROUP, _MESSAGE):
                continue
            elif not field.has_presence:
                self.has_defaults = True
            elif self._file.syntax == "proto3":
                added.proto3_optional = True
                added.oneof_index = len(target.oneof_decl)
                target.oneof_decl.add(name=f"_{field.name}")
        return groups

    def _add_field(
        self, target: Any, path: str, field: Any, repeated: bool, declared: pa.DataType | None,
        within: tuple[str, ...],
    ) -> Nested | None:  # fmt: skip
        """Adds a field. Returns it if it is a group or contains groups."""
        kind = _MESSAGE if field.type == _GROUP else field.type
        label = _REPEATED if repeated else _OPTIONAL
        added = target.field.add(name=field.name, number=field.number, label=label, type=kind)
        if kind == _ENUM:
            added.type_name = self._enum(field.enum_type)
        return (
            self._add_message(target, path, field, declared, within) if kind == _MESSAGE else None
        )

    def _add_message(
        self, target: Any, path: str, field: Any, declared: pa.DataType | None,
        within: tuple[str, ...],
    ) -> Nested | None:  # fmt: skip
        """Adds the message of the last field. Returns the field if it is or contains a group."""
        added, message, is_group = target.field[-1], field.message_type, field.type == _GROUP
        is_map = message.GetOptions().map_entry
        inner = _inner(declared, is_map=is_map)
        is_time = message.full_name in TIMES
        is_native = message.name in _NATIVE.get(message.file.package, ())
        if is_native and not (is_time and (inner is not None or not self._native_times)):
            self._import(message.file)
            added.type_name = f".{message.full_name}"
            return Nested(is_group) if is_group else None
        name = message.name if is_map else f"T{field.number}"
        added.type_name = f"{path}.{name}"
        nested = target.nested_type.add(name=name)
        if is_map:
            nested.options.map_entry = True
        if is_time and inner is None:
            for part in message.fields:
                marked = mark(message.full_name, part.name)
                nested.field.add(name=marked, number=part.number, label=_OPTIONAL, type=part.type)
            return Nested(is_group) if is_group else None
        groups = self._add_fields(nested, added.type_name, message, inner, within)
        return Nested(is_group, groups) if is_group or groups else None

    def _enum(self, enum: Any) -> str:
        """Returns the name of a copy. Each copy has a scope, as values of enums share theirs."""
        if enum.full_name not in self._enum_names:
            scope = self._enums.message_type.add(name=f"E{len(self._enum_names)}")
            copy = scope.enum_type.add(name="E")
            copy.options.allow_alias = True
            for value in enum.values:
                copy.value.add(name=value.name, number=value.number)
            if len({value.number for value in copy.value}) == len(copy.value):
                copy.ClearField("options")
            self._enum_names[enum.full_name] = f".{_PACKAGE}.{scope.name}.E"
        return self._enum_names[enum.full_name]

    def _import(self, file: Any) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        if file.name not in self._imported:
            for dependency in file.dependencies:
                self._import(dependency)
            copy = FileDescriptorProto()
            file.CopyToProto(copy)
            self._imported[file.name] = copy


def _types_by_name(type_: pa.DataType | None) -> Mapping[str, pa.DataType | None] | None:
    """Returns the types of the fields of a struct, or of a map; None for all fields."""
    if type_ is not None and pa.types.is_map(type_):
        return {"key": type_.key_type, "value": type_.item_type}
    if type_ is None or not pa.types.is_struct(type_):
        return None
    return {field.name.casefold(): field.type for field in type_}


def _inner(type_: pa.DataType | None, *, is_map: bool) -> pa.DataType | None:
    """Returns the type of the messages of a column; None if it is no such type."""
    if type_ is not None and is_list(type_):
        type_ = type_.value_type
    fits = type_ is not None and (pa.types.is_map(type_) if is_map else pa.types.is_struct(type_))
    return type_ if fits else None


def _repeated_fields(message: Any) -> set[int]:
    from google.protobuf.descriptor_pb2 import DescriptorProto

    copy = DescriptorProto()
    message.CopyToProto(copy)
    return {field.number for field in copy.field if field.label == _REPEATED}


def _in_oneof(field: Any) -> bool:
    """Returns whether a field is one of a choice, and not only optional."""
    oneof = field.containing_oneof
    return oneof is not None and (len(oneof.fields) > 1 or oneof.name != f"_{field.name}")


def _recursive(message: Any) -> PlanError:
    return PlanError(
        f"the message {message.full_name} is recursive", code="unsupported-type",
        hint="Declare the columns in schema, without this message, or set as_json: true.",
    )  # fmt: skip

"""Descriptors that a registry keeps in serialized form, as some clients register them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from penstock.core.errors import PlanError

_STANDARD = "google/protobuf/"


def serialized_set(text: str, imported: Mapping[str, str]) -> bytes | None:
    """A serialized FileDescriptorSet of a file and its imports; None where it is a text.

    Raises PlanError where an import is missing, or is a text.
    """
    main = _file(text)
    if main is None:
        return None
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    found: dict[str, Any] = {}
    _collect(main, imported, found)
    return bytes(FileDescriptorSet(file=[*found.values(), main]).SerializeToString())


def _collect(file: Any, imported: Mapping[str, str], found: dict[str, Any]) -> None:
    """Each file after those that it imports."""
    for path in file.dependency:
        if path not in found:
            other = _standard(path) if path.startswith(_STANDARD) else _file(imported.get(path, ""))
            if other is None:
                raise PlanError(f"its import {path} cannot be read", code="invalid-schema")
            other.name = path
            _collect(other, imported, found)
            found[path] = other


def _standard(path: str) -> Any:
    """One of the files that come with Protobuf."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    try:
        module = import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ModuleNotFoundError:
        return None
    found = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(found)
    return found


def _file(text: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError as Malformed

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, Malformed):
        return None

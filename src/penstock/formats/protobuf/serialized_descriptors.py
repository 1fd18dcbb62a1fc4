"""Serialized descriptors in a registry, as registered by some clients."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from penstock.core.errors import PlanError

_STANDARD = "google/protobuf/"


def serialized_set(text: str, imported: Mapping[str, str]) -> bytes | None:
    """Returns the serialized FileDescriptorSet of a file and its imports; None for a text.

    Raises PlanError if an import is missing or is a text.
    """
    main = _parse(text)
    if main is None:
        return None
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files: dict[str, Any] = {}
    _collect(main, imported, files)
    return bytes(FileDescriptorSet(file=[*files.values(), main]).SerializeToString())


def _collect(file: Any, imported: Mapping[str, str], files: dict[str, Any]) -> None:
    """Collects files, each after its imports."""
    for path in file.dependency:
        if path not in files:
            other = (
                _read_standard(path)
                if path.startswith(_STANDARD)
                else _parse(imported.get(path, ""))
            )
            if other is None:
                raise PlanError(f"cannot read the import {path}", code="invalid-schema")
            other.name = path
            _collect(other, imported, files)
            files[path] = other


def _read_standard(path: str) -> Any:
    """Returns a file that is part of Protobuf."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    try:
        module = import_module(path.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ModuleNotFoundError:
        return None
    descriptor = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(descriptor)
    return descriptor


def _parse(text: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError as Malformed

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, Malformed):
        return None

"""Names of Kubernetes objects: DNS labels, and keys of config maps and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from zlib import crc32

from penstock.core.errors import UserError

MAX_NAME = 48
"""The maximum length of a name: Kubernetes appends up to 15 characters to that of a StatefulSet."""
MAX_NAMESPACE = 63
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/@-]*[A-Za-z0-9]\Z")
_PREFIX = "pipeline-"
_MAX_KEY = 253


def object_name(pipeline: str) -> str:
    """Returns the name of the objects of a pipeline: a DNS label that starts with a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", pipeline.lower()).strip("-")
    if not name or not name[0].isalpha():
        name = f"{_PREFIX}{name}".rstrip("-")
    if len(name) <= MAX_NAME:
        return name
    checksum = f"-{crc32(pipeline.encode()):08x}"
    return name[: MAX_NAME - len(checksum)].rstrip("-") + checksum


def check_name(name: str) -> None:
    """Raises UserError for a name that is no DNS label of a Service and a StatefulSet."""
    if len(name) > MAX_NAME or not _LABEL.match(name):
        raise _invalid("--name", name, f"a letter first, {MAX_NAME} at most", object_name(name))


def check_namespace(namespace: str) -> None:
    """Raises UserError for a namespace that is no DNS label."""
    if len(namespace) > MAX_NAMESPACE or not _NAMESPACE.match(namespace):
        raise _invalid("--namespace", namespace, f"{MAX_NAMESPACE} at most", object_name(namespace))


def check_image(image: str) -> None:
    """Raises UserError for a text that is no name of an image."""
    if not _IMAGE.match(image):
        raise UserError(
            f'--image: expected the name of an image, found "{image}"', code="invalid-name",
            hint="Write for example --image registry.example.com/penstock:1.",
        )  # fmt: skip


def _invalid(option: str, name: str, rule: str, nearest: str) -> UserError:
    return UserError(
        f'{option}: expected lower-case letters, digits and hyphens ({rule}), found "{name}"',
        code="invalid-name", hint=f"Write {option} {nearest}.",
    )  # fmt: skip


def keys(paths: Iterable[str]) -> Mapping[str, str]:
    """Returns a key of a config map for each path. Different paths have different keys."""
    found: dict[str, str] = {}
    for path in sorted(paths):
        key = re.sub(r"[^A-Za-z0-9._-]", "_", path)
        if key.startswith("..") or key in (".", *found.values()) or len(key) > _MAX_KEY:
            key = f"{crc32(path.encode()):08x}_{key.lstrip('.')}"[:_MAX_KEY]
        found[path] = key
    return found

"""Separation of the secrets of a connection from its other options, by the schema of its type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.core.errors import PlanError
from penstock.core.secret import redact_urls
from penstock.core.text import did_you_mean

if TYPE_CHECKING:
    from penstock.sdk.registry import Kind

SET: Mapping[str, bool] = {"set": True}
"""The place of a secret in answers. In a request it keeps the secret."""
KINDS: tuple[Kind, ...] = ("source", "sink")
_NAME = re.compile(
    r"passw|passphrase|secret|token|credential|authorization|cookie|(api|private|access)[-_.]?key",
    re.IGNORECASE,
)
Schema = Mapping[str, Any]
Options = dict[str, Any]


@cache
def schemas(type_: str) -> Mapping[Kind, Schema]:
    """Returns the JSON Schemas of a type, as source and as sink. Raises PlanError without both."""
    from penstock.sdk import registry

    found: dict[Kind, Schema] = {}
    for kind in KINDS:
        if type_ in registry.types(kind):
            found[kind] = registry.find(kind, type_).config_type.model_json_schema()
    if not found:
        known = sorted({name for kind in KINDS for name in registry.types(kind)})
        raise PlanError(
            f'there is no connector "{type_}"', code="unknown-type",
            hint=did_you_mean(type_, known),
        )  # fmt: skip
    return found


def require_known(type_: str, options: Mapping[str, Any]) -> None:
    """Raises PlanError for an option that neither a source nor a sink of a type has."""
    from penstock.spec.node_models import SinkSpec, SourceSpec

    own = {name for schema in schemas(type_).values() for name in schema.get("properties", ())}
    known = own | SourceSpec.model_fields.keys() | SinkSpec.model_fields.keys()
    for name in options:
        if name not in known:
            raise PlanError(
                f'a connection of type {type_} has no option "{name[:80]}"', code="unknown-option",
                hint=did_you_mean(name, own),
            )  # fmt: skip


def separate(type_: str, options: Mapping[str, Any]) -> tuple[Options, Options]:
    """Returns the options without secrets, and the secrets, as maps of the same structure."""
    objects = [(schema, schema) for schema in schemas(type_).values()]
    return _separate(options, objects)


def with_secrets(options: Mapping[str, Any], secrets: Mapping[str, Any]) -> Options:
    """Returns options with secrets at their places."""
    result = dict(options)
    for key, secret in secrets.items():
        known = result.get(key)
        nested = isinstance(secret, Mapping) and isinstance(known, Mapping | None)
        result[key] = with_secrets(known or {}, secret) if nested else secret
    return result


def shown(options: Mapping[str, Any], secrets: Mapping[str, Any]) -> Options:
    """Returns options with `{"set": true}` at the places of secrets."""
    return with_secrets(options, _marks(secrets))


def kept(secrets: Mapping[str, Any], given: Mapping[str, Any]) -> Options:
    """Returns the secrets that a changed map of options keeps: those that it omits or marks as set.

    A secret of null is removed.
    """
    result: Options = {}
    for key, secret in secrets.items():
        value = given.get(key, SET)
        if isinstance(secret, Mapping) and isinstance(value, Mapping) and value != SET:
            nested = kept(secret, value)
            if nested:
                result[key] = nested
        elif value == SET:
            result[key] = secret
    return result


def without_marks(options: Mapping[str, Any]) -> Options:
    """Returns options without `{"set": true}` and null."""
    result: Options = {}
    for key, value in options.items():
        if value is None or value == SET:
            continue
        result[key] = without_marks(value) if isinstance(value, Mapping) else value
    return result


def _marks(secrets: Mapping[str, Any]) -> Options:
    return {
        key: _marks(value) if isinstance(value, Mapping) else SET for key, value in secrets.items()
    }


def _separate(
    options: Mapping[str, Any], objects: list[tuple[Schema, Schema]]
) -> tuple[Options, Options]:
    """Separates a map by the schemas that it may have, each with its root for references."""
    plain: Options = {}
    secrets: Options = {}
    for key, value in options.items():
        found = [
            (branch, root)
            for schema, root in objects
            for branch in _branches(schema.get("properties", {}).get(key), root)
        ]
        if isinstance(value, Mapping):
            inner, hidden = _separate(value, found)
            if inner or not hidden:
                plain[key] = inner
            if hidden:
                secrets[key] = hidden
        elif _is_secret(key, value, [branch for branch, _ in found]):
            secrets[key] = value
        else:
            plain[key] = value
    return plain, secrets


def _branches(schema: Schema | None, root: Schema) -> Iterator[Schema]:
    """Yields the alternatives of a schema, with references replaced."""
    if schema is None:
        return
    if "$ref" in schema:
        yield from _branches(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
        return
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if not alternatives:
        yield schema
    for alternative in alternatives:
        yield from _branches(alternative, root)


def _is_secret(key: str, value: Any, branches: list[Schema]) -> bool:
    if any(branch.get("writeOnly") or branch.get("format") == "password" for branch in branches):
        return True
    if _has_password(value):
        return True
    return not branches and isinstance(value, str) and bool(_NAME.search(key))


def _has_password(value: Any) -> bool:
    """Returns whether a value has a URL with a password."""
    if isinstance(value, Mapping):
        return any(map(_has_password, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_password, value))
    return isinstance(value, str) and redact_urls(value) != value

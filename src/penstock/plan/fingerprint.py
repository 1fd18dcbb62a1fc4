"""Fingerprints of plans: the parts that existing state depends on, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.core.paths import ConfigStr, Project
from penstock.plan.functions import Function, used_functions
from penstock.plan.graph import upstream
from penstock.plan.hashed_secrets import (
    KEYED_HASH,
    HashSecret,
    hash_secrets,
    secret_hash,
    secrets_of,
)
from penstock.plan.model import Plan, Query
from penstock.plan.node import Node
from penstock.sdk import Component, Format
from penstock.sdk.columns.json_mark import has_json
from penstock.sdk.phases import receiving_source
from penstock.sdk.transform import PayloadTransform, Transform
from penstock.spec.node_models import SinkSpec, SourceSpec

_PARTS = "hashed_parts"
LATER_PARTS = ("primary_key", "operation", "late", "on_error", "format", "mode", "recomputed")
"""The parts of nodes that fingerprints of earlier versions lack."""
_DEFAULT_SETTINGS = {
    "spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
}  # fmt: skip
_OTHER_SETTINGS = (
    "spark.sql.adaptive.", "spark.sql.execution.", "spark.sql.shuffle.", "spark.sql.streaming.",
    "spark.sql.ui.",
)  # fmt: skip
"""Settings of Spark's SQL that change no result."""


def fingerprint(plan: Plan, key: bytes | None = None, *, hash_parts: bool = True) -> dict[str, Any]:
    """Returns the plan as JSON with hashed secrets, for comparison with a later plan.

    Paths are relative to the directory of the pipeline file, which can be moved. `key` is the key
    of the hashes. Without a key the hashes are those of earlier versions. Without `hash_parts` a
    secret within a path is not hashed, as in earlier versions.
    """
    hash_secret = secret_hash(key)
    definition: dict[str, Any] = {
        "hash": "sha1" if key is None else KEYED_HASH,
        "queries": {query.name: _query(plan, query, hash_secret) for query in plan.queries},
        "sinks": {sink: query.name for query in plan.queries for sink in query.sinks},
    }
    definition = dict(relative_paths(definition, project(plan)))
    if hash_parts:
        definition[_PARTS] = True
        hash_secrets(definition, secrets_of(plan), hash_secret)
    return definition


def definition_without_secrets(node: Node) -> dict[str, Any]:
    """Returns the definition of a node as JSON, with empty texts in place of secrets.

    It has the same parts as in earlier versions, whose hashes are in the state.
    """
    definition = _node(node, lambda _: "", ())
    return {part: value for part, value in definition.items() if part not in LATER_PARTS}


def project(plan: Plan) -> Project:
    """Returns the directory of the plan's pipeline file."""
    return Project(plan.pipeline.source_map.base(()))


def relative_paths(definition: Any, project: Project) -> Any:
    """Returns a part of a fingerprint with the paths below a directory as relative paths.

    Fingerprints of earlier versions have absolute paths.
    """
    if isinstance(definition, str):
        return project.relative(definition)
    if isinstance(definition, Mapping):
        return {name: relative_paths(item, project) for name, item in definition.items()}
    if isinstance(definition, list):
        return [relative_paths(item, project) for item in definition]
    return definition


def comparable(plan: Plan, before: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """Returns the fingerprint of a plan with the hashes and the options of an earlier fingerprint.

    Options that the earlier version of a component lacks are left out if they have their default,
    and so are parts that the earlier version of Penstock does not record.
    """
    before_key = key if before.get("hash") == KEYED_HASH else None
    definition = fingerprint(plan, before_key, hash_parts=_PARTS in before)
    hashes = {function.name: function.hash_as_written for function in plan.functions}
    for name, query in definition["queries"].items():
        earlier_query = before["queries"].get(name, {})
        for part in ("stateless", "settings"):
            if earlier_query and part not in earlier_query:
                del query[part]
        for group in ("nodes", "stateless"):
            earlier = earlier_query.get(group, {})
            for node_name, node in query.get(group, {}).items():
                if node_name in earlier:
                    _adapt(node, earlier[node_name], plan.nodes[node_name], hashes)
    return definition


def _adapt(
    current: dict[str, Any], earlier: Mapping[str, Any], node: Node, hashes: Mapping[str, str]
) -> None:
    """Leaves out of a definition all parts that an earlier version does not record."""
    for function, code in current.get("functions", {}).items():
        known = earlier.get("functions", {}).get(function, {})
        if known.get("code") == hashes.get(function):
            code["code"] = known["code"]
    for part in LATER_PARTS:
        if part not in earlier:
            current.pop(part, None)
    if earlier["type"] == current["type"]:
        current["config"] = _known_options(current["config"], earlier["config"], node.component)
    format_ = _format_of(node)
    if format_ is not None and earlier.get("format") and current["format"]:
        current["format"] = _known_options(current["format"], earlier["format"], format_)


def _known_options(
    options: Mapping[str, Any], earlier: Mapping[str, Any], component: Component[Any]
) -> dict[str, Any]:
    """Returns options without those that are not in `earlier` and have their default."""
    defaults = _default_options(component)
    return {
        name: value for name, value in options.items() if name in earlier or name not in defaults
    }


def _default_options(component: Component[Any]) -> set[str]:
    """Returns the options of a component that have their default."""
    config = component.config
    return {
        name
        for name, field in type(config).model_fields.items()
        if not field.is_required()
        and getattr(config, name) == field.get_default(call_default_factory=True)
    }


def _query(plan: Plan, query: Query, hash_secret: HashSecret) -> dict[str, Any]:
    nodes = {
        name: _node(plan.nodes[name], hash_secret, plan.functions) for name in query.stream_nodes
    }
    for name in _updating_nodes(plan, query):
        nodes[name] = _node(plan.nodes[name], hash_secret, plan.functions)
        nodes[name]["updating"] = True
    others = [name for name in (*query.batch_nodes, *query.sinks) if name not in nodes]
    return {
        "root": query.root,
        "mode": query.output_mode,
        "nodes": nodes,
        "stateless": {
            name: _node(plan.nodes[name], hash_secret, plan.functions) for name in others
        },
        "settings": _settings(plan),
        "partitions": plan.spec.runtime.partitions,
        **({"whole_input": True} if query.whole_input else {}),
        **({"updating_ttl": plan.spec.runtime.updating_ttl} if query.updating else {}),
    }


def _settings(plan: Plan) -> dict[str, str]:
    """Returns the settings of Spark that change the meaning of SQL, without default ones."""
    settings = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in plan.spec.runtime.spark.items()
        if name.startswith("spark.sql.") and not name.startswith(_OTHER_SETTINGS)
    }
    return {n: v for n, v in settings.items() if v.lower() != _DEFAULT_SETTINGS.get(n, "").lower()}


def _updating_nodes(plan: Plan, query: Query) -> list[str]:
    """Returns the updating transforms of a query, and the transforms upstream of them.

    The state was computed by all of them: later deletes of rows must find the rows.
    """
    updating = [name for name in query.batch_nodes if plan.nodes[name].updating]
    members = {*updating, *upstream(updating, plan.nodes)}
    return [name for name in query.batch_nodes if name in members - {*query.stream_nodes}]


def _node(node: Node, hash_secret: HashSecret, functions: Iterable[Function]) -> dict[str, Any]:
    config = {name: _plain(value, hash_secret) for name, value in node.component.config}
    definition: dict[str, Any] = {
        "kind": node.kind, "type": node.type, "config": config,
        "inputs": list(node.inputs), "stateful": node.stateful, "static": node.static,
        "primary_key": list(node.primary_key), "operation": node.operation,
        "late": node.late, "on_error": node.on_error, "format": None,
    }  # fmt: skip
    format_ = _format_of(node)
    if format_ is not None:
        options = {name: _plain(value, hash_secret) for name, value in format_.config}
        definition["format"] = {"type": type(format_).__name__, **options}
    if isinstance(node.spec, SinkSpec):
        definition["mode"] = node.sink.mode
        if node.sink.recomputed_options:
            definition["recomputed"] = sorted(node.sink.recomputed_options)
    if isinstance(node.spec, SourceSpec):
        watermark = node.watermark
        definition["watermark"] = (
            watermark.model_dump(mode="json", exclude_none=True, exclude={"idle"})
            if watermark
            else None
        )
        definition["receives"] = receiving_source(node.component) is not None
        definition["columns"] = columns_text(str(node.source.columns))
        variants = [field.name for field in node.source.columns or () if has_json(field)]
        if variants:
            definition["variants"] = variants
    elif node.watermark is not None:
        definition["watermark"] = node.watermark.model_dump(
            mode="json", exclude_none=True, exclude={"idle"}
        )
    if node.state is not None and node.state.version > 1:
        definition["state_version"] = node.state.version
    if isinstance(node.component, Transform) and node.component.carries_rows:
        definition["carries_rows"] = True
    used = used_functions(functions, _sql_texts(node))
    if used:
        definition["functions"] = {name: each.definition() for name, each in used.items()}
    return definition


def _format_of(node: Node) -> Format[Any] | None:
    """Returns the format of a source, a sink or a transform of payloads."""
    if node.kind == "transform":
        return node.component.format if isinstance(node.component, PayloadTransform) else None
    return node.source.format if node.kind == "source" else node.sink.format


def _sql_texts(node: Node) -> Iterator[str]:
    """Yields the SQL texts of a node."""
    for sql in node.sql_texts:
        yield from (sql.written, sql.text)
    if node.watermark is not None and node.watermark.expression is not None:
        yield node.watermark.expression
    if node.watermark is not None and node.watermark.bound is not None:
        yield node.watermark.bound


def columns_text(text: str) -> str:
    """Returns the names and types in the text of a PyArrow schema, without its metadata."""
    fields = text.partition("\n-- schema metadata --")[0].splitlines()
    return "\n".join(line for line in fields if re.match(r"\S|\s+child \d+,", line))


def _plain(value: Any, hash_secret: HashSecret) -> Any:
    if hasattr(value, "reveal"):
        return hash_secret(value.reveal())
    if isinstance(value, ConfigStr) and value.secret:
        return hash_secret(value)
    if hasattr(value, "model_dump"):
        return {name: _plain(item, hash_secret) for name, item in value}
    if isinstance(value, Mapping):
        return {str(name): _plain(item, hash_secret) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, hash_secret) for item in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [_plain(item, hash_secret) for item in value]
    return json.loads(json.dumps(value, default=str))

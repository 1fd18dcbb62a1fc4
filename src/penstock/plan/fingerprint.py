"""Fingerprints of plans: compatibility of existing state with a changed plan.

Spark accepts some changes and silently computes wrong results (another window, sum for count), so
the parts of each query are compared with the parts of the last run.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from penstock.core.paths import ConfigStr, Project
from penstock.plan.functions import Function, used_functions
from penstock.plan.model import Node, Plan, Query
from penstock.plan.queries import upstream
from penstock.sdk.columns.json_mark import has_json
from penstock.spec.models import SourceSpec

Effect = Literal["compatible", "incompatible"]
HashSecret = Callable[[str], str]
KEYED_HASH = "hmac-sha256"


@dataclass(frozen=True)
class Change:
    """One difference between two plans and its effect on the state."""

    subject: str
    effect: Effect
    reason: str

    def __str__(self) -> str:
        mark = "-" if self.effect == "incompatible" else "+"
        return f"{mark} {self.subject}: {self.reason}"


def fingerprint(plan: Plan, key: bytes | None = None) -> dict[str, Any]:
    """Returns the plan as JSON with hashed secrets, for comparison with a later plan.

    Paths are relative to the directory of the pipeline file, which can be moved. `key` is the key
    of the hashes. Without a key the hashes are those of earlier versions.
    """
    hash_secret = _unkeyed_hash if key is None else partial(_keyed_hash, key)
    definition = {
        "hash": "sha1" if key is None else KEYED_HASH,
        "queries": {query.name: _query(plan, query, hash_secret) for query in plan.queries},
        "sinks": {sink: query.name for query in plan.queries for sink in query.sinks},
    }
    return dict(relative_paths(definition, project(plan)))


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

    Options that the earlier version of a component lacks are left out if they have their default.
    """
    definition = fingerprint(plan, key if before.get("hash") == KEYED_HASH else None)
    for name, query in definition["queries"].items():
        nodes = before["queries"].get(name, {}).get("nodes", {})
        for node_name, node in query["nodes"].items():
            earlier = nodes.get(node_name)
            if earlier is not None and earlier["type"] == node["type"]:
                defaults = _default_options(plan.nodes[node_name])
                node["config"] = {
                    option: value
                    for option, value in node["config"].items()
                    if option in earlier["config"] or option not in defaults
                }
    return definition


def _default_options(node: Node) -> set[str]:
    """Returns the options of a node that have their default."""
    config = node.component.config
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
    return {
        "root": query.root,
        "mode": query.output_mode,
        "nodes": nodes,
        "partitions": plan.spec.runtime.partitions,
        **({"whole_input": True} if query.whole_input else {}),
        **({"updating_ttl": plan.spec.runtime.updating_ttl} if query.updating else {}),
    }


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
    }  # fmt: skip
    if isinstance(node.spec, SourceSpec):
        watermark = node.watermark
        definition["watermark"] = (
            watermark.model_dump(mode="json", exclude_none=True, exclude={"idle"})
            if watermark
            else None
        )
        definition["columns"] = _columns_text(str(node.source.columns))
        variants = [field.name for field in node.source.columns or () if has_json(field)]
        if variants:
            definition["variants"] = variants
    elif node.watermark is not None:
        definition["watermark"] = node.watermark.model_dump(
            mode="json", exclude_none=True, exclude={"idle"}
        )
    used = used_functions(functions, _sql_texts(node))
    if used:
        definition["functions"] = {name: each.definition() for name, each in used.items()}
    return definition


def _sql_texts(node: Node) -> Iterator[str]:
    """Yields the SQL texts of a node."""
    if node.relation is not None:
        for sql in node.relation.sql_texts():
            yield from (sql.written, sql.text)
    if node.watermark is not None and node.watermark.expression is not None:
        yield node.watermark.expression
    if node.watermark is not None and node.watermark.bound is not None:
        yield node.watermark.bound


def _columns_text(text: str) -> str:
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


def _keyed_hash(key: bytes, secret: str) -> str:
    return f"{KEYED_HASH}:" + hmac.new(key, secret.encode(), hashlib.sha256).hexdigest()


def _unkeyed_hash(secret: str) -> str:
    return "sha1:" + hashlib.sha1(secret.encode()).hexdigest()


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Returns the differences that affect the state, from the plan of the last run to this plan."""
    before, after = _normalized(before), _normalized(after)
    changes = list(_moved_sinks(before, after))
    for name, query in after["queries"].items():
        earlier = before["queries"].get(name)
        if earlier is None:
            changes.append(
                Change(f'query "{name}"', "compatible", "new, starts at the initial offset")
            )
        else:
            changes += _changed_query(name, earlier, query)
    for name in before["queries"]:
        if name not in after["queries"]:
            changes.append(Change(f'query "{name}"', "compatible", "removed, its state is unused"))
    return changes


def _normalized(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a fingerprint as read from JSON, without blanks around queries.

    Earlier versions include metadata of columns.
    """
    copy: dict[str, Any] = json.loads(json.dumps(definition))
    for query in copy["queries"].values():
        for node in query["nodes"].values():
            if "columns" in node:
                node["columns"] = _columns_text(node["columns"])
            if isinstance(sql := node["config"].get("sql"), str):
                node["config"]["sql"] = sql.strip()
    return copy


def _moved_sinks(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for sink, query in after["sinks"].items():
        earlier = before["sinks"].get(sink)
        if earlier is not None and earlier != query and query not in before["queries"]:
            yield Change(
                f'sink "{sink}"', "incompatible",
                f'moved from query "{earlier}" to query "{query}", which has no state and would '
                "write all rows again",
            )  # fmt: skip


def new_sinks(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Returns the sinks that an existing query gains, with the query of each sink."""
    return {
        sink: query
        for sink, query in after["sinks"].items()
        if query in before["queries"] and before["sinks"].get(sink) != query
    }


def new_columns(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the columns that the rows of existing sinks gain, by sink.

    The key `columns` of a fingerprint holds the columns of each sink. Fingerprints of earlier
    versions lack the key.
    """
    earlier = before.get("columns", {})
    gained = {
        sink: [name for name in columns if name not in earlier[sink]]
        for sink, columns in after.get("columns", {}).items()
        if sink in earlier
    }
    return {sink: columns for sink, columns in gained.items() if columns}


def _changed_query(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Change]:
    if before["mode"] != after["mode"]:
        yield Change(f'query "{name}"', "incompatible",
                     f"its output mode was {before['mode']} and is {after['mode']}")  # fmt: skip
    if "updating_ttl" in before and "updating_ttl" in after:
        yield from _changed_ttl(name, before["updating_ttl"], after["updating_ttl"])
    stateful = any(
        node["stateful"] and not node.get("updating") for node in after["nodes"].values()
    )
    if stateful and before["partitions"] != after["partitions"]:
        reason = "the number of partitions of its state was set by its first run"
        yield Change(f'query "{name}"', "incompatible", reason)
    for node, definition in after["nodes"].items():
        earlier = before["nodes"].get(node)
        if earlier is None:
            yield _new_node(name, node, definition)
        elif earlier != definition:
            yield _changed_node(node, earlier, definition, stateful)
    for node, earlier in before["nodes"].items():
        if node not in after["nodes"]:
            needed = earlier["kind"] == "source" or earlier["stateful"]
            lost = needed and not earlier.get("updating")
            effect: Effect = "incompatible" if lost else "compatible"
            subject = f'{earlier["kind"]} "{node}"'
            yield Change(subject, effect, f'no longer part of query "{name}"')


def _changed_ttl(query: str, before: float | None, after: float | None) -> Iterator[Change]:
    """Yields the change of `runtime.updating_ttl`: with it a state has rows and their times."""
    subject = f'query "{query}"'
    if before is not None and after is not None and before != after:
        reason = "runtime.updating_ttl changed; applies to all rows of its state"
        yield Change(subject, "compatible", reason)
    elif before is None and after is not None:
        reason = "runtime.updating_ttl is set, and its state has no times of its rows"
        yield Change(subject, "incompatible", reason)
    elif before is not None and after is None:
        reason = "runtime.updating_ttl is no longer set, and its state lacks the removed rows"
        yield Change(subject, "incompatible", reason)


def _new_node(query: str, name: str, node: Mapping[str, Any]) -> Change:
    subject = f'{node["kind"]} "{name}"'
    if node["stateful"] or node.get("updating"):
        return Change(
            subject, "incompatible", f'new in query "{query}", its state lacks earlier rows'
        )
    if node["kind"] == "source":
        return Change(
            subject, "compatible", f'new in query "{query}", starts at its initial offset'
        )
    return Change(subject, "compatible", f'new in query "{query}", applies to new rows')


def _changed_node(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], stateful: bool
) -> Change:
    subject = f'{after["kind"]} "{name}"'
    keys = sorted(
        key
        for key in {*after, *before} & {*after, "functions"}
        if before.get(key) != after.get(key)
    )
    if "functions" in keys:
        one, other = before.get("functions", {}), after.get("functions", {})
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        keys = [*(key for key in keys if key != "functions"), *(f"function {n}" for n in names)]
    if "config" in keys:
        options = {**before["config"], **after["config"]}
        changed = [o for o in options if before["config"].get(o) != after["config"].get(o)]
        keys = [*(k for k in keys if k != "config"), *changed]
    changes = f"{', '.join(keys)} changed"
    if before["type"] != after["type"]:
        return Change(
            subject, "incompatible", f"its type was {before['type']} and is {after['type']}"
        )
    if after["stateful"] or before["stateful"] or after.get("updating"):
        return Change(
            subject, "incompatible", f"{changes}; its state was computed by the old definition"
        )
    if after["static"] and not before["static"]:
        return Change(subject, "incompatible", "it was a stream and is a static table")
    if after["kind"] == "source" and stateful and "columns" in keys:
        return Change(
            subject, "incompatible", f"{changes}; the state holds rows of the old columns"
        )
    if stateful and after["kind"] == "transform":
        return Change(
            subject, "compatible", f"{changes}; applies to new rows, open windows keep old rows"
        )
    return Change(subject, "compatible", f"{changes}; applies to new rows")

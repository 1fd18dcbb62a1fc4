"""What a plan was when its state was written, and whether that state fits a changed plan.

Spark takes some changes without a word and then computes something wrong (another window, sum for
count), so each query's parts are compared with those of the last run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.paths import Text
from penstock.plan.model import Node, Plan, Query
from penstock.spec.models import SourceSpec

Effect = Literal["keeps", "refused"]


@dataclass(frozen=True)
class Change:
    """One difference between two plans and what it means for the state."""

    what: str
    effect: Effect
    why: str

    def __str__(self) -> str:
        mark = "-" if self.effect == "refused" else "+"
        return f"{mark} {self.what}: {self.why}"


def fingerprint(plan: Plan) -> dict[str, Any]:
    """The plan as JSON, secrets as hashes, for comparison with a later one."""
    return {
        "queries": {query.name: _query(plan, query) for query in plan.queries},
        "sinks": {sink: query.name for query in plan.queries for sink in query.sinks},
    }


def _query(plan: Plan, query: Query) -> dict[str, Any]:
    return {
        "trunk": query.trunk,
        "mode": query.output_mode,
        "nodes": {name: _node(plan.nodes[name]) for name in query.within},
        "partitions": plan.spec.runtime.partitions,
    }


def _node(node: Node) -> dict[str, Any]:
    config = {name: _plain(value) for name, value in node.component.config}
    described: dict[str, Any] = {
        "kind": node.kind, "type": node.type, "config": config,
        "inputs": list(node.inputs), "stateful": node.stateful, "static": node.static,
    }  # fmt: skip
    if isinstance(node.spec, SourceSpec):
        watermark = node.spec.watermark
        described["watermark"] = watermark.model_dump(mode="json") if watermark else None
        described["columns"] = str(node.source.columns)
    return described


def _plain(value: Any) -> Any:
    if hasattr(value, "reveal"):
        return _hashed(value.reveal())
    if isinstance(value, Text) and value.secret:
        return _hashed(value)
    if hasattr(value, "model_dump"):
        return {name: _plain(each) for name, each in value}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return json.loads(json.dumps(value, default=str))


def _hashed(secret: str) -> str:
    return "sha1:" + hashlib.sha1(secret.encode()).hexdigest()


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """The differences that matter for state, from the plan of the last run to this one."""
    before, after = json.loads(json.dumps(before)), json.loads(json.dumps(after))
    changes = list(_moved_sinks(before, after))
    for name, query in after["queries"].items():
        earlier = before["queries"].get(name)
        if earlier is None:
            changes.append(Change(f'query "{name}"', "keeps", "new, starts from the beginning"))
        else:
            changes += _changed_query(name, earlier, query)
    for name in before["queries"]:
        if name not in after["queries"]:
            changes.append(Change(f'query "{name}"', "keeps", "gone, its state stays unused"))
    return changes


def _moved_sinks(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for sink, query in after["sinks"].items():
        earlier = before["sinks"].get(sink)
        if earlier is not None and earlier != query and query not in before["queries"]:
            yield Change(
                f'sink "{sink}"', "refused",
                f'was fed by the query "{earlier}" and now by "{query}", which has no state and '
                "would write everything again",
            )  # fmt: skip


def _changed_query(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Change]:
    if before["mode"] != after["mode"]:
        yield Change(f'query "{name}"', "refused",
                     f"its output mode was {before['mode']} and is {after['mode']}")  # fmt: skip
    stateful = any(node["stateful"] for node in after["nodes"].values())
    if stateful and before["partitions"] != after["partitions"]:
        why = "the number of partitions of its state was pinned by its first run"
        yield Change(f'query "{name}"', "refused", why)
    for node, now in after["nodes"].items():
        then = before["nodes"].get(node)
        if then is None:
            yield _new_node(name, node, now, stateful)
        elif then != now:
            yield _changed_node(node, then, now, stateful)
    for node, then in before["nodes"].items():
        if node not in after["nodes"]:
            refused = then["kind"] == "source" or then["stateful"]
            yield Change(f'{then["kind"]} "{node}"', "refused" if refused else "keeps",
                         f'no longer part of query "{name}"')  # fmt: skip


def _new_node(query: str, name: str, now: Mapping[str, Any], stateful: bool) -> Change:
    what = f'{now["kind"]} "{name}"'
    if now["stateful"]:
        return Change(what, "refused", f'new in query "{query}", remembers rows that are gone')
    if now["kind"] == "source":
        return Change(what, "keeps", f'new in query "{query}", read from its beginning')
    return Change(what, "keeps", f'new in query "{query}", applies from now on')


def _changed_node(
    name: str, then: Mapping[str, Any], now: Mapping[str, Any], stateful: bool
) -> Change:
    what = f'{now["kind"]} "{name}"'
    keys = sorted(key for key in now if then.get(key) != now[key])
    if "config" in keys:
        options = {**then["config"], **now["config"]}
        changed = [o for o in options if then["config"].get(o) != now["config"].get(o)]
        keys = [*(k for k in keys if k != "config"), *changed]
    told = f"{', '.join(keys)} changed"
    if then["type"] != now["type"]:
        return Change(what, "refused", f"its type was {then['type']} and is {now['type']}")
    if now["stateful"] or then["stateful"]:
        return Change(what, "refused", f"{told}; what it remembers was computed by the old text")
    if now["kind"] == "source" and stateful and "columns" in keys:
        return Change(what, "refused", f"{told}; rows of the old columns are remembered")
    if stateful and now["kind"] == "transform":
        return Change(what, "keeps", f"{told}; applies from now on, open windows keep old rows")
    return Change(what, "keeps", f"{told}; applies from now on")

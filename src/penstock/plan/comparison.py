"""Comparison of the fingerprints of two plans: the effect of each change on existing state.

Spark accepts some changes and silently computes wrong results (another window, sum for count), so
the parts of each query are compared with the parts of the last run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.plan.fingerprint import columns_text
from penstock.sql.canonical import canonical_sql

Effect = Literal["compatible", "incompatible"]


@dataclass(frozen=True)
class Change:
    """One difference between two plans and its effect on the state."""

    subject: str
    effect: Effect
    reason: str

    def __str__(self) -> str:
        mark = "-" if self.effect == "incompatible" else "+"
        return f"{mark} {self.subject}: {self.reason}"


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
    """Returns a fingerprint as read from JSON, with SQL in its canonical form.

    Earlier versions include metadata of columns.
    """
    copy: dict[str, Any] = json.loads(json.dumps(definition))
    for query in copy["queries"].values():
        for node in query["nodes"].values():
            if "columns" in node:
                node["columns"] = columns_text(node["columns"])
            _normalize_sql(node["config"], "sql")
            _normalize_sql(node.get("watermark") or {}, "expression", "bound")
    return copy


def _normalize_sql(options: dict[str, Any], *names: str) -> None:
    for name in names:
        if isinstance(sql := options.get(name), str):
            options[name] = canonical_sql(sql)


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

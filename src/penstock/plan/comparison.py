"""Comparison of the fingerprints of two plans: the effect of each change on existing state.

Spark accepts some changes and silently computes wrong results (another window, sum for count), so
the parts of each query are compared with the parts of the last run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.core.text import plural
from penstock.plan.fingerprint import columns_text
from penstock.plan.node_changes import (
    EFFECTS,
    Change,
    Effect,
    QueryState,
    changed_node,
    changed_parts,
    changed_stateless_node,
    new_node,
)
from penstock.sql.canonical import canonical_sql

_STATE_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.session.timeZone",
)
"""The settings of Spark that change the meaning of the rows in a state."""


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Returns the differences that affect the state, from the plan of the last run to this plan.

    The changes of a node in several queries are one difference, with the worst of their effects.
    """
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
    return list(_by_node([*changes, *_changed_stateless(before, after)]))


def _by_node(changes: Sequence[Change]) -> Iterator[Change]:
    """Yields the changes of queries, and one change of each node."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.subject, []).append(change)
    for subject, each in found.items():
        if subject.startswith("query "):
            yield from dict.fromkeys(each)
            continue
        worst: Effect = max((change.effect for change in each), key=EFFECTS.index)
        reasons = dict.fromkeys(change.reason for change in each if change.effect == worst)
        yield Change(subject, worst, "; ".join(reasons))


def _normalized(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a fingerprint as read from JSON, with SQL in its canonical form.

    Earlier versions include metadata of columns.
    """
    copy: dict[str, Any] = json.loads(json.dumps(definition))
    for query in copy["queries"].values():
        for node in (*query["nodes"].values(), *query.get("stateless", {}).values()):
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
    state = QueryState.of(after)
    partitions = after["partitions"]
    if (state.in_spark or state.updating) and partitions not in (None, before["partitions"]):
        reason = f"its state is repartitioned into {plural(partitions, 'partition')} at the start"
        yield Change(f'query "{name}"', "compatible", reason)
    if "settings" in before and "settings" in after:
        yield from _changed_settings(name, before["settings"], after["settings"], state)
    for node, definition in after["nodes"].items():
        earlier = before["nodes"].get(node)
        if earlier is None:
            yield new_node(name, node, definition)
        elif changed_parts(earlier, definition):
            yield changed_node(node, earlier, definition, state)
    for node, earlier in before["nodes"].items():
        if node not in after["nodes"]:
            needed = earlier["kind"] == "source" or earlier["stateful"]
            lost = needed and not earlier.get("updating")
            effect: Effect = "incompatible" if lost else "compatible"
            subject = f'{earlier["kind"]} "{node}"'
            yield Change(subject, effect, f'no longer part of query "{name}"')


def _changed_stateless(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yields the changes of the sinks and of the transforms that are computed on each batch.

    A new sink has a start of its own (see `runtime.backfills.sink_starts`).
    """
    known, remaining = _members(before), _members(after)
    for query, definition in after["queries"].items():
        earlier = before["queries"].get(query, {}).get("stateless")
        for name, node in definition.get("stateless", {}).items() if earlier is not None else ():
            if name not in known and node["kind"] != "sink":
                yield new_node(query, name, node)
            elif name in earlier and earlier[name] != node:
                yield changed_stateless_node(name, earlier[name], node)
    for query, definition in before["queries"].items():
        for name, node in definition.get("stateless", {}).items():
            if query in after["queries"] and name not in remaining:
                reason = f'no longer part of query "{query}"'
                effect: Effect = "compatible"
                if node.get("carries_rows"):
                    effect, reason = "incompatible", f"{reason}, and its state may have rows"
                yield Change(f'{node["kind"]} "{name}"', effect, reason)


def _members(definition: Mapping[str, Any]) -> set[str]:
    """Returns the names of all nodes of a fingerprint."""
    return {
        name
        for query in definition["queries"].values()
        for name in (*query["nodes"], *query.get("stateless", {}))
    }


def _changed_settings(
    query: str, before: Mapping[str, str], after: Mapping[str, str], state: QueryState
) -> Iterator[Change]:
    for setting in sorted({*before, *after}):
        if before.get(setting) == after.get(setting):
            continue
        subject, changed = f'query "{query}"', f"runtime.spark {setting} changed"
        if setting in _STATE_SETTINGS and (state.in_spark or state.updating):
            yield Change(
                subject, "incompatible", f"{changed}; its state was computed with the old value"
            )
        else:
            yield Change(subject, "compatible", f"{changed}; applies to new rows")


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

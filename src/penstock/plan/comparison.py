"""Comparison of the fingerprints of two plans: the effect of each change on existing state.

Spark accepts some changes and silently computes wrong results (another window, sum for count), so
the parts of each query are compared with the parts of the last run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.plan.changed_columns import ColumnChanges
from penstock.plan.fingerprint import columns_text
from penstock.sql.canonical import canonical_sql

Effect = Literal["compatible", "incompatible"]
_OUTSIDE_STATE = frozenset({"late", "on_error", "format", "mode"})
"""The parts of a node that no state depends on."""
_STATE_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.session.timeZone",
)
"""The settings of Spark that change the meaning of the rows in a state."""


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
    """Returns the differences that affect the state, from the plan of the last run to this plan.

    A change of a node that has the same effect on several queries is one difference.
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
    return list(dict.fromkeys([*changes, *_changed_stateless(before, after)]))


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
    state = _State.of(after)
    if state.in_spark and before["partitions"] != after["partitions"]:
        reason = "the number of partitions of its state was set by its first run"
        yield Change(f'query "{name}"', "incompatible", reason)
    if "settings" in before and "settings" in after:
        yield from _changed_settings(name, before["settings"], after["settings"], state)
    for node, definition in after["nodes"].items():
        earlier = before["nodes"].get(node)
        if earlier is None:
            yield _new_node(name, node, definition)
        elif _changed_parts(earlier, definition):
            yield _changed_node(node, earlier, definition, state)
    for node, earlier in before["nodes"].items():
        if node not in after["nodes"]:
            needed = earlier["kind"] == "source" or earlier["stateful"]
            lost = needed and not earlier.get("updating")
            effect: Effect = "incompatible" if lost else "compatible"
            subject = f'{earlier["kind"]} "{node}"'
            yield Change(subject, effect, f'no longer part of query "{name}"')


@dataclass(frozen=True)
class _State:
    """The state of a query: that of Spark, and that of updating transforms."""

    in_spark: bool
    updating: bool

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> _State:
        nodes = query["nodes"].values()
        return cls(
            any(node["stateful"] and not node.get("updating") for node in nodes),
            any(node.get("updating") for node in nodes),
        )


def _changed_stateless(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yields the changes of the sinks and of the transforms that are computed on each batch.

    A new sink has a start of its own (see `runtime.backfills.sink_starts`).
    """
    known, remaining = _members(before), _members(after)
    for query, definition in after["queries"].items():
        earlier = before["queries"].get(query, {}).get("stateless")
        for name, node in definition.get("stateless", {}).items() if earlier is not None else ():
            if name not in known and node["kind"] != "sink":
                yield _new_node(query, name, node)
            elif name in earlier and earlier[name] != node:
                yield _changed_stateless_node(name, earlier[name], node)
    for query, definition in before["queries"].items():
        for name, node in definition.get("stateless", {}).items():
            if query in after["queries"] and name not in remaining:
                reason = f'no longer part of query "{query}"'
                yield Change(f'{node["kind"]} "{name}"', "compatible", reason)


def _members(definition: Mapping[str, Any]) -> set[str]:
    """Returns the names of all nodes of a fingerprint."""
    return {
        name
        for query in definition["queries"].values()
        for name in (*query["nodes"], *query.get("stateless", {}))
    }


def _changed_stateless_node(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Change:
    if before["type"] == after["type"]:
        upserts = before.get("mode") == "upsert" == after.get("mode")
        if upserts and before["primary_key"] != after["primary_key"]:
            reason = "primary_key changed; the rows written before have the old key"
            return Change(f'sink "{name}"', "incompatible", reason)
        return _changed_node(name, before, after, _State(False, False))
    types = f"its type was {before['type']} and is {after['type']}"
    return Change(f'{after["kind"]} "{name}"', "compatible", f"{types}; applies to new rows")


def _changed_settings(
    query: str, before: Mapping[str, str], after: Mapping[str, str], state: _State
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
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], state: _State
) -> Change:
    subject = f'{after["kind"]} "{name}"'
    parts = _changed_parts(before, after)
    changes = f"{', '.join(_names(parts, before, after))} changed"
    if before["type"] != after["type"]:
        return Change(
            subject, "incompatible", f"its type was {before['type']} and is {after['type']}"
        )
    if (after["stateful"] or before["stateful"] or after.get("updating")) and (
        parts - _OUTSIDE_STATE
    ):
        return Change(
            subject, "incompatible", f"{changes}; its state was computed by the old definition"
        )
    if after["static"] and not before["static"]:
        return Change(subject, "incompatible", "it was a stream and is a static table")
    reason = _incompatible_source(before, after, parts, state) if "columns" in after else None
    if reason is not None:
        return Change(subject, "incompatible", f"{changes}; {reason}")
    return Change(subject, "compatible", f"{changes}; {_applies(before, after, parts, state)}")


def _changed_parts(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Returns the parts that differ. Fingerprints of earlier versions lack some parts."""
    known = {*after, *before} & {*after, "functions", "variants"}
    changed = {part for part in known if before.get(part) != after.get(part)}
    keys = [sorted(node.get("primary_key") or ()) for node in (before, after)]
    # The columns of a key in a state are found by name, too.
    return changed - {"primary_key"} if keys[0] == keys[1] and after["kind"] != "sink" else changed


def _names(parts: set[str], before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns the names of changed parts, with the options and functions that have changed."""
    names = sorted(parts - {"config", "functions"})
    if "functions" in parts:
        one, other = before.get("functions", {}), after.get("functions", {})
        names += [f"function {n}" for n in {**one, **other} if one.get(n) != other.get(n)]
    if "config" in parts:
        one, other = before["config"], after["config"]
        names += [option for option in {**one, **other} if one.get(option) != other.get(option)]
    return names


def _incompatible_source(
    before: Mapping[str, Any], after: Mapping[str, Any], parts: set[str], state: _State
) -> str | None:
    """Returns the reason why a changed source does not fit the state of its query, or None."""
    if _phases(before) != _phases(after):
        return "the state has the offsets of the old phases"
    columns = parts & {"columns", "variants"}
    if state.in_spark and columns:
        return "the state holds rows of the old columns"
    if state.in_spark and _event_time(before) != _event_time(after):
        return "the state holds rows with the old event time"
    if not state.updating:
        return None
    if parts & {"primary_key", "operation"}:
        return "the state holds the rows of the old keys"
    if "variants" in parts or (columns and "primary_key" not in before):
        return "the state holds rows of the old columns"
    return None


def _phases(source: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Returns the types of the phases of a hybrid source, and the start of the last one."""
    config = source["config"]
    return [phase.get("type") for phase in config.get("phases", [])], config.get("handover")


def _event_time(source: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the watermark of a source without the delay, which applies from then on."""
    watermark = source.get("watermark") or {}
    return {option: value for option, value in watermark.items() if option != "delay"}


def _applies(
    before: Mapping[str, Any], after: Mapping[str, Any], parts: set[str], state: _State
) -> str:
    """Returns the effect of a compatible change of a node."""
    if state.updating and "columns" in parts and after["kind"] == "source":
        columns = ColumnChanges.of(before["columns"], after["columns"])
        return f"{columns}; columns of the state are found by name"
    if state.in_spark and after["kind"] == "transform":
        return "applies to new rows, open windows keep old rows"
    return "applies to new rows"

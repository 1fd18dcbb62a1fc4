"""Changes of a node: the effect of each one on the state of its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from penstock.plan.changed_columns import ColumnChanges

Effect = Literal["compatible", "incompatible"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
"""The effects, the worst last."""
_OUTSIDE_STATE = frozenset({"late", "on_error", "format", "mode"})
"""The parts of a node that no state depends on."""


@dataclass(frozen=True)
class Change:
    """One difference between two plans and its effect on the state."""

    subject: str
    effect: Effect
    reason: str

    def __str__(self) -> str:
        mark = "-" if self.effect == "incompatible" else "+"
        return f"{mark} {self.subject}: {self.reason}"


@dataclass(frozen=True)
class QueryState:
    """The state of a query: that of Spark, and that of updating transforms."""

    in_spark: bool
    updating: bool

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> QueryState:
        nodes = query["nodes"].values()
        return cls(
            any(node["stateful"] and not node.get("updating") for node in nodes),
            any(node.get("updating") for node in nodes),
        )


def new_node(query: str, name: str, node: Mapping[str, Any]) -> Change:
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


def changed_stateless_node(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Change:
    if before.get("carries_rows") and not after.get("carries_rows"):
        reason = "it no longer carries rows over, and its state may have rows"
        return Change(f'transform "{name}"', "incompatible", reason)
    if before["type"] == after["type"]:
        upserts = before.get("mode") == "upsert" == after.get("mode")
        if upserts and before["primary_key"] != after["primary_key"]:
            reason = "primary_key changed; the rows written before have the old key"
            return Change(f'sink "{name}"', "incompatible", reason)
        return changed_node(name, before, after, QueryState(False, False))
    types = f"its type was {before['type']} and is {after['type']}"
    return Change(f'{after["kind"]} "{name}"', "compatible", f"{types}; applies to new rows")


def changed_node(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], state: QueryState
) -> Change:
    subject = f'{after["kind"]} "{name}"'
    parts = changed_parts(before, after)
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


def changed_parts(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Returns the parts that differ. Fingerprints of earlier versions lack some parts."""
    known = {*after, *before} & {*after, "functions", "variants"}
    compared = known - {"recomputed", "receives"}
    changed = {part for part in compared if before.get(part) != after.get(part)}
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
        names += _changed_options(before, after)
    return names


def _changed_options(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    one, other = before["config"], after["config"]
    return [option for option in {**one, **other} if one.get(option) != other.get(option)]


def _incompatible_source(
    before: Mapping[str, Any], after: Mapping[str, Any], parts: set[str], state: QueryState
) -> str | None:
    """Returns the reason why a changed source does not fit the state of its query, or None."""
    if _phases(before) != _phases(after):
        return "the state has the offsets of the old phases"
    # Fingerprints of earlier versions lack this.
    if before.get("receives", after.get("receives")) != after.get("receives"):
        has, needs = ("a journal", "rows") if before["receives"] else ("rows", "a journal")
        return f"the state has offsets of {has}, and the source now has those of {needs}"
    columns = parts & {"columns", "variants"}
    changes = ColumnChanges.of(before["columns"], after["columns"])
    variants = _changed_variants(before, after, changes.added)
    only_adds = changes.added and not changes.lost and not changes.reordered and not variants
    # `engine.checks.state_check` finds added columns that an operator would have to keep.
    if state.in_spark and columns and not only_adds:
        return "the state holds rows of the old columns"
    if state.in_spark and _event_time(before) != _event_time(after):
        return "the state holds rows with the old event time"
    if not state.updating:
        return None
    if parts & {"primary_key", "operation"}:
        return "the state holds the rows of the old keys"
    if variants or (columns and "primary_key" not in before):
        return "the state holds rows of the old columns"
    return None


def _changed_variants(
    before: Mapping[str, Any], after: Mapping[str, Any], added: Sequence[str]
) -> bool:
    """Returns whether a column of before is VARIANT only before, or only after."""
    known = set(before.get("variants", ()))
    return known != set(after.get("variants", ())) - set(added)


def _phases(source: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Returns the types of the phases of a hybrid source, and the start of the last one."""
    config = source["config"]
    return [phase.get("type") for phase in config.get("phases", [])], config.get("handover")


def _event_time(source: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the watermark of a source without the delay, which applies from then on."""
    watermark = source.get("watermark") or {}
    return {option: value for option, value in watermark.items() if option != "delay"}


def _applies(
    before: Mapping[str, Any], after: Mapping[str, Any], parts: set[str], state: QueryState
) -> str:
    """Returns the effect of a compatible change of a node."""
    if state.updating and "columns" in parts and after["kind"] == "source":
        columns = ColumnChanges.of(before["columns"], after["columns"])
        return f"{columns}; columns of the state are found by name"
    if state.in_spark and after["kind"] == "transform":
        return "applies to new rows, open windows keep old rows"
    options = _changed_options(before, after)
    recomputed = [option for option in options if option in after.get("recomputed", ())]
    if recomputed and parts == {"config"} and recomputed == options:
        return "computed again from all rows"
    if recomputed:
        return f"{', '.join(recomputed)} computed again from all rows, the rest applies to new rows"
    return "applies to new rows"

"""Each part of a fingerprint in `compare`: in a query with state, and in one without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from plans import ORDERS, changed, memory, planned, sql

from penstock.plan.comparison import compare, new_columns
from penstock.plan.fingerprint import comparable, fingerprint
from penstock.plan.model import Plan

COLUMNS = "id: int64\nat: timestamp[us, tz=UTC]"
SAME, REFUSED, ALLOWED = "same", "incompatible", "compatible"


def node(kind: str, inputs: list[str], **more: Any) -> dict[str, Any]:
    return {
        "kind": kind, "type": "sql", "config": {"rate": 1}, "inputs": inputs,
        "stateful": False, "static": False, **more,
    }  # fmt: skip


def definition(stateful: bool) -> dict[str, Any]:
    """Returns a fingerprint of one query; with `stateful` its root has state."""
    nodes = {
        "orders": node("source", [], watermark={"delay": 60.0}, columns=COLUMNS, receives=False),
        "names": node("source", [], static=True, watermark=None, columns=COLUMNS),
        "kept": node("transform", ["orders", "names"]),
        "root": node("transform", ["kept"], stateful=stateful),
    }
    query = {"root": "root", "mode": "append", "partitions": 4, "nodes": nodes}
    return {"hash": "sha1", "queries": {"q": query}, "sinks": {"out": "q"}}


CHANGES = {
    "nothing": ({}, SAME, SAME),
    "output mode": ({"mode": "update"}, REFUSED, REFUSED),
    "partitions": ({"partitions": 8}, ALLOWED, SAME),
    "an option of a source": ({"nodes.orders.config.rate": 2}, ALLOWED, ALLOWED),
    "a new option of a source": ({"nodes.orders.config.jitter": 2}, ALLOWED, ALLOWED),
    "the type of a phase": ({"nodes.orders.config.phases": [{"type": "a"}]}, REFUSED, REFUSED),
    "the start of the last phase": ({"nodes.orders.config.handover": {"x": 1}}, REFUSED, REFUSED),
    "a source that receives": (
        {"nodes.orders.receives": True, "nodes.orders.config.changes": True},
        REFUSED,
        REFUSED,
    ),
    "the type of a source": ({"nodes.orders.type": "kafka"}, REFUSED, REFUSED),
    "the columns of a source": ({"nodes.orders.columns": "id: int64"}, REFUSED, ALLOWED),
    "a NOT NULL": ({"nodes.orders.columns": f"{COLUMNS} not null"}, REFUSED, ALLOWED),
    "the watermark": ({"nodes.orders.watermark": {"delay": 5.0}}, ALLOWED, ALLOWED),
    "no watermark": ({"nodes.orders.watermark": None}, ALLOWED, ALLOWED),
    "the columns of a static table": ({"nodes.names.columns": "id: int64"}, REFUSED, ALLOWED),
    "an option above the root": ({"nodes.kept.config.rate": 2}, ALLOWED, ALLOWED),
    "inputs above the root": ({"nodes.kept.inputs": ["names", "orders"]}, ALLOWED, ALLOWED),
    "the type above the root": ({"nodes.kept.type": "filter"}, REFUSED, REFUSED),
    "an option of the root": ({"nodes.root.config.rate": 2}, REFUSED, ALLOWED),
    "inputs of the root": ({"nodes.root.inputs": ["orders"]}, REFUSED, ALLOWED),
    "a new transform": ({"nodes.more": node("transform", ["kept"])}, ALLOWED, ALLOWED),
    "a new transform with state": (
        {"nodes.more": node("transform", ["kept"], stateful=True)},
        REFUSED,
        REFUSED,
    ),
    "a new query": ({"queries": {"other": definition(True)["queries"]["q"]}}, ALLOWED, ALLOWED),
}


def altered(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    after = json.loads(json.dumps(before))
    for name, query in changes.get("queries", {}).items():
        after["queries"][name] = query
    inner = {path: value for path, value in changes.items() if path != "queries"}
    for path, value in inner.items():
        *route, last = path.split(".")
        part = after["queries"]["q"]
        for key in route:
            part = part[key]
        part[last] = value
    return after


def effect(before: Any, after: Any) -> str:
    effects = {change.effect for change in compare(before, after)}
    assert len(effects) < 2
    return effects.pop() if effects else SAME


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("stateful", [True, False])
def test_effect_of_a_change_of_one_part(name: str, stateful: bool) -> None:
    changes, with_state, without_state = CHANGES[name]
    expected = with_state if stateful else without_state
    before = definition(stateful)
    after = altered(before, changes)
    assert effect(before, after) == expected
    removed_state = name == "a new transform with state"
    if name in ("the columns of a source", "the columns of a static table"):
        # Columns are added.
        assert effect(after, before) == ALLOWED
    elif name in ("a new transform", "a new transform with state"):
        assert effect(after, before) == (REFUSED if removed_state else ALLOWED)
    else:
        assert effect(after, before) == expected


@pytest.mark.parametrize("stateful", [True, False])
def test_gain_and_loss_of_state(stateful: bool) -> None:
    assert effect(definition(stateful), definition(not stateful)) == REFUSED


@pytest.mark.parametrize("stateful", [True, False])
def test_stream_that_becomes_a_static_table(stateful: bool) -> None:
    stream = definition(stateful)
    table = altered(stream, {"nodes.orders.static": True})
    assert effect(stream, table) == REFUSED
    assert effect(table, stream) == ALLOWED


@pytest.mark.parametrize("stateful", [True, False])
def test_sources_and_sinks(stateful: bool) -> None:
    before = definition(stateful)
    more = altered(before, {"nodes.more": node("source", [], watermark=None, columns=COLUMNS)})
    assert effect(before, more) == ALLOWED
    assert effect(more, before) == REFUSED
    moved = altered(before, {})
    moved["queries"]["new"] = moved["queries"].pop("q")
    moved["sinks"]["out"] = "new"
    assert [change.effect for change in compare(before, moved)] == [REFUSED, ALLOWED, ALLOWED]
    without = {**before, "sinks": {}}
    assert effect(before, without) == effect(without, before) == SAME


HOURLY = {
    "sources": {"orders": {key: value for key, value in ORDERS.items() if key != "schema"}},
    "transforms": {
        "hourly": sql("SELECT window.start, count(*) AS n FROM orders GROUP BY window(at, '1 h')"),
        "once": {"type": "dedupe", "from": "orders"},
    },
    "sinks": {"counts": memory("hourly"), "ids": memory("once")},
}


def plan_with(directory: Path, columns: pa.Schema) -> Plan:
    plan = planned(directory, HOURLY)
    plan.nodes["orders"].source.columns = columns
    return plan


def test_metadata_of_columns_is_no_change(tmp_path: Path) -> None:
    field = pa.field("at", pa.timestamp("us", "UTC"))
    plain = pa.schema([pa.field("id", pa.int64()), field])
    marked = pa.schema(
        [pa.field("id", pa.int64(), metadata={"comment": "a key"}), field], {"registry": "7"}
    )
    before = fingerprint(plan_with(tmp_path, marked))
    after = fingerprint(plan_with(tmp_path, plain))
    assert compare(before, after) == compare(after, before) == []
    for query in before["queries"].values():
        query["nodes"]["orders"]["columns"] = str(marked)
    assert compare(before, after) == []
    assert compare(after, fingerprint(plan_with(tmp_path, plain.append(field)))) != []


def test_option_with_its_default_is_no_change_of_an_earlier_version(tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    plan = plan_with(tmp_path, columns)
    before = json.loads(json.dumps(fingerprint(plan)))
    del before["queries"]["once"]["nodes"]["once"]["config"]["within"]
    assert compare(before, comparable(plan, before, b"")) == []
    forever = changed(HOURLY, {"transforms.once.within": "forever"})
    other = planned(tmp_path, forever)
    other.nodes["orders"].source.columns = columns
    assert [str(change) for change in compare(before, comparable(other, before, b""))] == [
        '- transform "once": within changed; its state was computed by the old definition'
    ]


@pytest.mark.parametrize("setting", ["ansi.enabled", "caseSensitive", "session.timeZone", "x"])
@pytest.mark.parametrize("stateful", [False, True])
def test_settings_that_change_the_meaning_of_a_state(setting: str, stateful: bool) -> None:
    name = f"spark.sql.{setting}"
    before = altered(definition(stateful), {"settings": {name: "1"}})
    after = altered(definition(stateful), {"settings": {name: "2"}})
    (change,) = compare(before, after)
    assert change.effect == (REFUSED if stateful and setting != "x" else ALLOWED)


def test_columns_of_a_new_sink_are_not_new() -> None:
    before = {"columns": {"out": ["id", "at"]}}
    after = {"columns": {"out": ["id", "at", "n"], "more": ["id"]}}
    assert new_columns(before, after) == {"out": ["n"]}
    assert new_columns({}, after) == {}


def test_carried_rows_are_not_lost() -> None:
    before = definition(False)
    before["queries"]["q"]["stateless"] = {"w": node("transform", ["root"], carries_rows=True)}
    for after in ({}, {"w": node("transform", ["root"], config={"rate": 2})}):
        changed_ = json.loads(json.dumps(before))
        changed_["queries"]["q"]["stateless"] = after
        (change,) = compare(before, changed_)
        assert change.effect == "incompatible" and "its state may have rows" in change.reason
        assert list(compare(before, before)) == []


def test_a_node_of_several_queries_is_listed_once() -> None:
    """The state of one query has rows of the old columns; the other query has no state."""
    before = definition(stateful=True)
    before["queries"]["p"] = definition(stateful=False)["queries"]["q"]
    after = json.loads(json.dumps(before))
    for query in after["queries"].values():
        query["nodes"]["orders"]["columns"] = "id: int64"
        del query["nodes"]["names"]
    found = compare(before, after)
    assert [(each.subject, each.effect) for each in found] == [
        ('source "orders"', "incompatible"), ('source "names"', "incompatible"),
    ]  # fmt: skip
    assert "the state holds rows of the old columns" in found[0].reason
    assert found[1].reason == 'no longer part of query "q"; no longer part of query "p"'

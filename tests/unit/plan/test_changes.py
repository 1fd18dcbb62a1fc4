"""Primary keys, operation columns and modes of a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import PenstockError, flatten_errors
from penstock.plan.model import Node, Plan

SOURCE = {"type": "memory", "rows": [], "schema": "op STRING, id INT, other INT",
          "primary_key": "id", "operation_column": "op"}  # fmt: skip


def plan_of(directory: Path, sink: dict[str, Any], **parts: dict[str, Any]) -> Plan:
    spec: dict[str, Any] = {
        "sources": {"rows": SOURCE | parts.get("source", {})},
        "transforms": {"kept": {"type": "filter", "from": "rows", "where": "id > 0"}
                       | parts.get("transform", {})},
        "sinks": {"out": {"from": "kept", **sink}},
    }  # fmt: skip
    path = directory / "pipeline.json"
    path.write_text(json.dumps(spec))
    return app.plan(path)


def mistakes(directory: Path, sink: dict[str, Any], **parts: dict[str, Any]) -> list[PenstockError]:
    with pytest.raises(PenstockError) as caught:
        plan_of(directory, sink, **parts)
    return list(flatten_errors(caught.value))


UPSERT = {"type": "memory", "mode": "upsert"}


@pytest.mark.parametrize(
    ("sink", "transform", "key"),
    [
        (UPSERT, {}, ("id",)),
        (UPSERT, {"primary_key": "other"}, ("other",)),
        (UPSERT | {"primary_key": ["id", "other"]}, {"primary_key": "other"}, ("id", "other")),
    ],
)
def test_an_upsert_inherits_its_primary_key(
    tmp_path: Path, sink: dict[str, Any], transform: dict[str, Any], key: tuple[str, ...]
) -> None:
    node = plan_of(tmp_path, sink, transform=transform).nodes["out"]
    assert (node.sink.primary_key, node.sink.mode) == (key, sink.get("mode", "append"))
    assert node.operation == "op"


def test_an_upsert_without_a_primary_key_is_an_error(tmp_path: Path) -> None:
    (error,) = mistakes(tmp_path, UPSERT, source={"primary_key": []})
    assert (error.code, error.hint) == (
        "missing-option",
        "Set primary_key: [COLUMN, ...] on the sink or on a node upstream, in SQL "
        "PRIMARY KEY (COLUMN, ...).",
    )


@pytest.mark.parametrize("mode", ["upsert", "replace"])
def test_an_unsupported_mode_is_an_error(tmp_path: Path, mode: str) -> None:
    source = {"operation_column": None}
    (error,) = mistakes(tmp_path, {"type": "blackhole", "mode": mode}, source=source)
    assert error.code == "unsupported-mode" and f"mode: {mode}" in error.message


@pytest.mark.parametrize(
    ("sink", "hint"),
    [
        ({"type": "print"}, "Remove primary_key."),
        ({"type": "memory", "mode": "append"}, "Set mode: upsert, or remove primary_key."),
        ({"type": "memory", "mode": "replace"}, "Set mode: upsert, or remove primary_key."),
    ],
)
def test_a_primary_key_without_effect_is_an_error(
    tmp_path: Path, sink: dict[str, Any], hint: str
) -> None:
    (error,) = mistakes(tmp_path, sink | {"primary_key": "id"}, source={"operation_column": None})
    assert (error.code, error.hint) == ("unused-option", hint)


@pytest.mark.parametrize(
    ("sink", "operation", "mode"),
    [
        ({"type": "memory"}, None, "upsert"),
        ({"type": "redis", "url": "redis://localhost", "key": "{id}"}, None, "upsert"),
        ({"type": "redis", "url": "redis://localhost", "key": "{id}"}, "op", "upsert"),
        ({"type": "kafka", "brokers": "localhost:1", "topic": "rows"}, None, "append"),
        ({"type": "kafka", "brokers": "localhost:1", "topic": "rows"}, "op", "upsert"),
        ({"type": "kafka", "brokers": "localhost:1", "topic": "rows", "format": "debezium_json"},
         "op", "append"),
        ({"type": "files", "path": "out", "format": "debezium_json"}, "op", "append"),
    ],
)  # fmt: skip
def test_a_primary_key_selects_the_mode(
    tmp_path: Path, sink: dict[str, Any], operation: str | None, mode: str
) -> None:
    source = {"operation_column": operation}
    node = plan_of(tmp_path, sink | {"primary_key": "id"}, source=source).nodes["out"]
    assert (node.sink.mode, node.sink.primary_key) == (mode, ("id",))


@pytest.mark.parametrize(
    "sink",
    [
        {"type": "kafka", "brokers": "localhost:1", "topic": "rows"},
        {"type": "nats", "url": "nats://localhost:1", "bucket": "rows"},
    ],
)
def test_a_primary_key_is_the_key_of_appended_records(tmp_path: Path, sink: dict[str, Any]) -> None:
    plan = plan_of(tmp_path, sink | {"primary_key": "id"}, source={"operation_column": None})
    assert plan.nodes["out"].sink.primary_key == ("id",)


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ({"type": "files", "path": "out"}, "does not support upsert and delete"),
        ({"type": "memory"}, "has mode: append"),
    ],
)
def test_a_sink_must_apply_the_operations_of_its_source(
    tmp_path: Path, sink: dict[str, Any], reason: str
) -> None:
    (error,) = mistakes(tmp_path, {**sink, "from": "rows"})
    assert error.code == "unsupported-operation" and reason in error.message and error.hint


@pytest.mark.parametrize(("name", "code"), [("missing", "unknown-column"), ("other", "wrong-type")])
def test_the_operation_column_is_text(tmp_path: Path, name: str, code: str) -> None:
    assert [e.code for e in mistakes(tmp_path, UPSERT, source={"operation_column": name})] == [code]


@pytest.mark.parametrize("upstream", ["rows", "kept"])
@pytest.mark.parametrize("sink", [{"type": "print"}, {"type": "blackhole"}])
def test_changes_are_shown(tmp_path: Path, sink: dict[str, Any], upstream: str) -> None:
    node = plan_of(tmp_path, {**sink, "from": upstream}).nodes["out"]
    assert (node.operation, node.removed_operation) == ("op", None)


@pytest.mark.parametrize(
    ("transform", "operation"),
    [
        ({"type": "drop", "columns": ["op"]}, None),
        ({"type": "rename", "columns": {"op": "_op"}}, "_op"),
        ({"type": "select", "columns": ["id"]}, "op"),
        ({"type": "select", "columns": ["id", "'d' AS x"], "operation_column": "x"}, "x"),
    ],
)
def test_a_transform_inherits_the_operation(
    tmp_path: Path, transform: dict[str, Any], operation: str | None
) -> None:
    assert changed_by(tmp_path, transform, sink={"type": "print"}).operation == operation


def test_only_sql_combines_changes(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as caught:
        changed_by(tmp_path, {"type": "dedupe", "within": "forever"}, sink=UPSERT)
    (error,) = flatten_errors(caught.value)
    assert error.code == "state-of-changes" and "transform drop" in str(error.hint)


@pytest.mark.parametrize(
    ("sql", "primary_key"),
    [
        ("SELECT id, count(*) AS n FROM rows GROUP BY id", ("id",)),
        ("SELECT a.id FROM rows a JOIN rows b ON a.id = b.id", ()),
        ("SELECT DISTINCT id FROM rows", ("id",)),
        ("SELECT id % 10 AS part, max(id) AS last FROM rows GROUP BY 1", ("part",)),
        ("SELECT max(id) AS last FROM rows GROUP BY id % 10", ()),
    ],
)
def test_sql_that_combines_changes_is_updating(
    tmp_path: Path, sql: str, primary_key: tuple[str, ...]
) -> None:
    node = changed_by(tmp_path, {"type": "sql", "sql": sql}, sink={"type": "print"})
    assert (node.updating, node.operation, node.primary_key) == (True, "_op", primary_key)


def test_changes_without_a_primary_key_are_not_combined(tmp_path: Path) -> None:
    transform = {"type": "sql", "sql": "SELECT op, count(*) AS n FROM rows GROUP BY op"}
    with pytest.raises(PenstockError) as caught:
        changed_by(tmp_path, transform, sink={"type": "print"}, source={"primary_key": []})
    (error,) = flatten_errors(caught.value)
    assert error.code == "missing-option" and "primary_key" in str(error.hint)


def changed_by(
    directory: Path, transform: dict[str, Any], sink: dict[str, Any], **parts: dict[str, Any]
) -> Node:
    """Returns the node of a transform over changes."""
    origin = {} if transform["type"] == "sql" else {"from": "rows"}
    spec = {
        "sources": {"rows": SOURCE | parts.get("source", {})},
        "transforms": {"changed": {**origin, **transform}},
        "sinks": {"out": {"from": "changed", **sink}},
    }
    path = directory / "pipeline.json"
    path.write_text(json.dumps(spec))
    return app.plan(path).nodes["changed"]


def test_different_operation_columns_are_an_error(tmp_path: Path) -> None:
    different = {
        "operation_column": "kind",
        "primary_key": "other",
        "schema": "kind STRING, other INT",
    }
    union = "SELECT other FROM a UNION ALL SELECT other FROM b"
    spec = {
        "sources": {"a": SOURCE, "b": SOURCE | different},
        "transforms": {"both": {"type": "sql", "sql": union}},
        "sinks": {"out": {"type": "memory", "from": "both"}},
    }  # fmt: skip
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(spec))
    with pytest.raises(PenstockError) as caught:
        app.plan(path)
    assert caught.value.code == "different-operations"

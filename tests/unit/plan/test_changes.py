"""Primary keys, operation columns and modes of a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import PenstockError, flatten_errors
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.transforms.last_rows import LastRows

NEXMARK = Path(__file__).parents[3] / "examples" / "nexmark"

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


def errors_of(
    directory: Path, sink: dict[str, Any], **parts: dict[str, Any]
) -> list[PenstockError]:
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
    (error,) = errors_of(tmp_path, UPSERT, source={"primary_key": []})
    assert (error.code, error.hint) == (
        "missing-option",
        "Set primary_key: [COLUMN, ...] on the sink or on a node upstream, in SQL "
        "PRIMARY KEY (COLUMN, ...).",
    )


@pytest.mark.parametrize("mode", ["upsert", "replace"])
def test_an_unsupported_mode_is_an_error(tmp_path: Path, mode: str) -> None:
    source = {"operation_column": None}
    (error,) = errors_of(tmp_path, {"type": "blackhole", "mode": mode}, source=source)
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
    (error,) = errors_of(tmp_path, sink | {"primary_key": "id"}, source={"operation_column": None})
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
    (error,) = errors_of(tmp_path, {**sink, "from": "rows"})
    assert error.code == "unsupported-operation" and reason in error.message and error.hint


@pytest.mark.parametrize(("name", "code"), [("missing", "unknown-column"), ("other", "wrong-type")])
def test_the_operation_column_is_text(tmp_path: Path, name: str, code: str) -> None:
    assert [e.code for e in errors_of(tmp_path, UPSERT, source={"operation_column": name})] == [
        code
    ]


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


@pytest.mark.parametrize(
    ("transform", "sink", "inserted"),
    [
        ({}, UPSERT, False),
        ({}, UPSERT | {"primary_key": "id"}, False),
        ({}, UPSERT | {"primary_key": ["other", "id"]}, False),
        ({}, UPSERT | {"primary_key": "other"}, True),
        ({"primary_key": "other"}, UPSERT | {"primary_key": "other"}, False),
        ({"type": "rename", "columns": {"id": "k"}}, UPSERT | {"primary_key": "k"}, False),
        ({"type": "select", "columns": ["other"]}, UPSERT | {"primary_key": "other"}, True),
        ({"type": "select", "columns": ["id", "explode(array(1, 2)) AS n"]},
         UPSERT | {"primary_key": ["id", "n"]}, True),
        ({"type": "map", "set": {"id": "id % 2"}}, UPSERT | {"primary_key": "id"}, True),
        ({}, {"type": "files", "path": "out", "format": "debezium_json", "primary_key": "other"},
         True),
        ({}, {"type": "files", "path": "out", "format": "debezium_json"}, False),
        ({}, {"type": "print"}, False),
    ],
)  # fmt: skip
def test_a_sink_with_another_key_has_the_last_rows_of_its_key(
    tmp_path: Path, transform: dict[str, Any], sink: dict[str, Any], inserted: bool
) -> None:
    plan = plan_with(tmp_path, transform, sink)
    assert plan.nodes["out"].inputs == (("out_rows",) if inserted else ("kept",))
    if inserted:
        rows = plan.nodes["out_rows"]
        assert (rows.updating, rows.primary_key) == (True, plan.nodes["out"].sink.primary_key)
        assert not rows.is_named


def plan_with(directory: Path, transform: dict[str, Any], sink: dict[str, Any]) -> Plan:
    kept = transform if "type" in transform else {"type": "filter", "where": "id > 0", **transform}
    spec: dict[str, Any] = {
        "sources": {"rows": SOURCE},
        "transforms": {"kept": {"from": "rows", **kept}},
        "sinks": {"out": {"from": "kept", **sink}},
    }
    path = directory / "pipeline.json"
    path.write_text(json.dumps(spec))
    return app.plan(path)


def test_changes_without_a_known_key_have_the_key_of_the_sink(tmp_path: Path) -> None:
    sink = UPSERT | {"primary_key": "other"}
    assert plan_of(tmp_path, sink, source={"primary_key": []}).nodes["out"].inputs == ("kept",)


def test_a_function_that_may_lose_the_key_needs_a_declared_one(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def scored(rows):\n    return rows\n")
    python = {"type": "python", "function": "code:scored"}
    with pytest.raises(PenstockError) as caught:
        plan_with(tmp_path, python, UPSERT | {"primary_key": "other"})
    (error,) = flatten_errors(caught.value)
    assert error.code == "lost-key" and "Set primary_key" in str(error.hint)
    declared = python | {"primary_key": "other"}
    assert plan_with(tmp_path, declared, UPSERT).nodes["out"].sink.primary_key == ("other",)
    keyed = UPSERT | {"primary_key": ["id"]}
    assert plan_with(tmp_path, python, keyed).nodes["out"].inputs == ("kept",)


@pytest.mark.parametrize(
    ("transform", "key"),
    [
        ({"type": "select", "columns": ["id % 2 AS id"]}, ()),
        ({"type": "select", "columns": ["id AS k", "other"]}, ("k",)),
        ({"type": "select", "columns": ["id", "explode(array(1, 2)) AS n"]}, ()),
        ({"type": "map", "set": {"id": "id % 2"}}, ()),
        ({"type": "map", "set": {"k": "id % 2"}}, ("id",)),
        ({"type": "drop", "columns": ["id"]}, ()),
        ({"type": "rename", "columns": {"id": "k"}}, ("k",)),
        ({"type": "sql", "sql": "SELECT id FROM rows UNION ALL SELECT other FROM rows"}, ()),
        ({"type": "sql", "sql": "SELECT id, n FROM rows LATERAL VIEW explode(array(1)) AS n"}, ()),
    ],
)  # fmt: skip
def test_a_key_is_inherited_where_it_is_proved(
    tmp_path: Path, transform: dict[str, Any], key: tuple[str, ...]
) -> None:
    assert changed_by(tmp_path, transform, sink={"type": "print"}).primary_key == key


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT other, count(*) AS n, max(rand()) AS r FROM rows GROUP BY other",
         "unrepeatable-changes"),
        ("SELECT other, current_timestamp() AS at, count(*) AS n FROM rows GROUP BY other",
         "unrepeatable-changes"),
        ("SELECT id, other FROM rows ORDER BY rand() LIMIT 3", "unrepeatable-changes"),
        ("SELECT id, uuid() AS u FROM rows WHERE other > rand()", "unrepeatable-changes"),
        ("SELECT id, uuid() AS u FROM rows WHERE other > 1", None),
        ("SELECT id, current_timestamp() AS at FROM rows WHERE now() > TIMESTAMP '2024-01-01'",
         None),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_taken_back(tmp_path: Path, sql: str, code: str | None) -> None:
    transform = {"type": "sql", "sql": sql}
    if code is None:
        assert not changed_by(tmp_path, transform, sink={"type": "print"}).updating
        return
    with pytest.raises(PenstockError) as caught:
        changed_by(tmp_path, transform, sink={"type": "print"})
    (error,) = flatten_errors(caught.value)
    assert error.code == code and error.hint


def test_a_column_of_chance_upstream_is_stored(tmp_path: Path) -> None:
    """Below it, a transform of the changes of a result is computed again, and is an error."""
    spec: dict[str, Any] = {
        "sources": {"rows": SOURCE},
        "transforms": {
            "marked": {"type": "map", "from": "rows", "set": {"r": "rand()"}},
            "counted": {"type": "sql",
                        "sql": "SELECT other, max(r) AS r FROM marked GROUP BY other"},
        },
        "sinks": {"out": {"type": "print", "from": "counted"}},
    }  # fmt: skip
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(spec))
    assert not app.plan(path).nodes["marked"].updating
    spec["transforms"]["shown"] = {"type": "map", "from": "counted", "set": {"u": "uuid()"}}
    spec["sinks"]["out"]["from"] = "shown"
    path.write_text(json.dumps(spec))
    with pytest.raises(PenstockError) as caught:
        app.plan(path)
    assert caught.value.code == "unrepeatable-changes"


@pytest.mark.parametrize(
    ("sql", "updating"),
    [
        ("SELECT r.id FROM rows r JOIN (VALUES (1)) v(id) ON r.other = v.id", True),
        ("SELECT id FROM rows LEFT SEMI JOIN (VALUES (1)) v(other) USING (other)", True),
        ("SELECT id, explode(array(other, 1)) AS e FROM rows", True),
        ("SELECT id, e FROM rows LATERAL VIEW explode(array(other)) AS e", True),
        ("SELECT r.id FROM rows r LEFT JOIN (VALUES (1)) v(id) ON r.other = v.id", False),
        ("SELECT id FROM rows WHERE other > 1", False),
    ],
)
def test_changes_without_a_row_are_taken_back(tmp_path: Path, sql: str, updating: bool) -> None:
    transform = {"type": "sql", "sql": sql}
    assert changed_by(tmp_path, transform, sink={"type": "print"}).updating is updating
    if updating:
        source = {"primary_key": []}
        with pytest.raises(PenstockError, match="retracts rows"):
            changed_by(tmp_path, transform, sink={"type": "print"}, source=source)


@pytest.mark.parametrize(("join", "valid"), [("JOIN", False), ("LEFT JOIN", True)])
def test_changes_are_joined_with_a_lookup_table(tmp_path: Path, join: str, valid: bool) -> None:
    lookup = {"type": "files", "path": "a.csv", "schema": "other INT, name STRING", "lookup": True}
    spec = {
        "sources": {"rows": SOURCE, "names": lookup},
        "transforms": {"named": {"type": "sql", "sql": f"SELECT r.id, n.name FROM rows r {join} "
                                 "names n ON r.other = n.other"}},
        "sinks": {"out": UPSERT | {"from": "named", "primary_key": "id"}},
    }  # fmt: skip
    path = tmp_path / "pipeline.json"
    path.write_text(json.dumps(spec))
    if valid:
        assert app.plan(path).nodes["out"].inputs == ("named",)
        return
    with pytest.raises(PenstockError, match="drops or repeats changes") as caught:
        app.plan(path)
    assert caught.value.hint == "Use LEFT JOIN, which keeps the changes of rows without a match."


NUMBERED = "SELECT *, row_number() OVER (PARTITION BY other ORDER BY id) AS n FROM rows"


@pytest.mark.parametrize(
    ("scope", "sql", "key"),
    [
        ("stream", f"SELECT id, other FROM ({NUMBERED}) WHERE n <= 1", ("other",)),
        ("stream", f"SELECT other, n FROM ({NUMBERED}) WHERE n <= 3", ("other", "n")),
        ("batch", f"SELECT other FROM ({NUMBERED}) WHERE n <= 1", ()),
    ],
)
def test_row_numbers_of_all_rows_are_a_primary_key(
    tmp_path: Path, scope: str, sql: str, key: tuple[str, ...]
) -> None:
    transform = {"type": "sql", "scope": scope, "sql": sql}
    node = plan_with_rows(tmp_path, transform, {}).nodes["kept"]
    assert node.primary_key == key


def test_row_numbers_of_a_batch_are_no_primary_key_of_an_updating_query(tmp_path: Path) -> None:
    above = "SELECT other, n, count(*) OVER (PARTITION BY other) AS c FROM kept"
    transform = {"type": "sql", "scope": "batch", "sql": NUMBERED}
    plan = plan_with_rows(tmp_path, transform, {"above": {"type": "sql", "sql": above}})
    assert plan.nodes["above"].updating
    assert plan.nodes["above"].primary_key == ()


def plan_with_rows(directory: Path, kept: dict[str, Any], above: dict[str, dict[str, Any]]) -> Plan:
    """Returns a plan whose source has no primary key and no operations."""
    spec: dict[str, Any] = {
        "sources": {
            "rows": {"type": "generate", "fields": {"id": "sequence", "other": "sequence"}}
        },
        "transforms": {"kept": kept, **above},
        "sinks": {"out": {"from": next(iter(above), "kept"), "type": "blackhole"}},
    }
    path = directory / "pipeline.json"
    path.write_text(json.dumps(spec))
    return app.plan(path)


@pytest.mark.parametrize("query", ["q4", "q6", "q9", "q15", "q16", "q18", "q19"])
def test_a_table_with_the_key_of_the_query_keeps_no_rows(query: str) -> None:
    nodes = app.plan(NEXMARK / f"{query}.sql").nodes
    assert nodes[query].sink.primary_key
    assert not any(isinstance(node.component, LastRows) for node in nodes.values())

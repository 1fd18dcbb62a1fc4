"""Whether the state of one plan fits another: every kind of change, in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from plans import HOURLY, MORE, NAMES, ORDERS, changed, memory, planned, sql, upserts

from penstock.core.known_secrets import remember_secret
from penstock.core.paths import Project
from penstock.plan.comparison import compare
from penstock.plan.fingerprint import comparable, fingerprint, relative_paths
from penstock.plan.node_changes import Change

BASE: dict[str, Any] = {
    "sources": {"orders": ORDERS, "names": NAMES},
    "transforms": {
        "dear": sql("SELECT id, price FROM orders WHERE price > 5"),
        "wide": sql("SELECT * FROM orders WHERE price > 0"),
        "hourly": sql(HOURLY.format("wide")),
    },
    "sinks": {"out": memory("dear"), "counts": memory("hourly")},
}
"""Two queries: "orders" without state, "hourly" with it."""


class Case(NamedTuple):
    """Effects and subjects that `compare` returns from BASE to the changed plan, and back."""

    changes: dict[str, Any]
    forward: list[str]
    back: list[str]


def same(changes: dict[str, Any], *effects: str) -> Case:
    return Case(changes, [*effects], [*effects])


CASES = {
    "nothing": same({}),
    "the options of a sink": same({"sinks.out.name": "elsewhere"}, 'compatible sink "out"'),
    "the type of a sink": same(
        {"sinks.out": {"type": "print", "from": "dear"}}, 'compatible sink "out"'
    ),
    "the format of a sink": Case(
        {"sinks.out": {"type": "files", "from": "dear", "path": "a", "format": "csv"}},
        ['compatible sink "out"'],
        ['compatible sink "out"'],
    ),
    "a transform below the trunk": same(
        {"transforms.dear.sql": "SELECT id FROM orders WHERE price > 9"},
        'compatible transform "dear"',
    ),
    "a transform more below the trunk": Case(
        {
            "transforms.checked": {"type": "filter", "from": "dear", "where": "id > 0"},
            "sinks.out.from": "checked",
        },
        ['compatible transform "checked"', 'compatible sink "out"'],
        ['compatible transform "checked"', 'compatible sink "out"'],
    ),
    "records that fail": same(
        {"transforms.hourly.on_error": "fail"}, 'compatible transform "hourly"'
    ),
    "a setting of Spark that states depend on": same(
        {"runtime.spark": {"spark.sql.ansi.enabled": False}},
        'compatible query "orders"',
        'incompatible query "hourly"',
    ),
    "another setting of Spark": same(
        {
            "runtime.spark": {
                "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
                "spark.sql.ansi.enabled": True,
            }
        },
        'compatible query "orders"',
        'compatible query "hourly"',
    ),
    "the event time": same(
        {
            "sources.orders.watermark": {
                "column": "at",
                "bound": "at - INTERVAL 2 MINUTES",
            }
        },
        'incompatible source "orders"',
    ),
    "a transform above state": same(
        {"transforms.wide.sql": "SELECT * FROM orders WHERE price > 1"},
        'compatible transform "wide"',
    ),
    "a transform with state": same(
        {"transforms.hourly.sql": HOURLY.format("wide").replace("1 hour", "2 hours")},
        'incompatible transform "hourly"',
    ),
    "an aggregate function": same(
        {"transforms.hourly.sql": HOURLY.format("wide").replace("count(*)", "sum(id)")},
        'incompatible transform "hourly"',
    ),
    "the options of a source": same(
        {"sources.orders.rows": [{"id": 5}]},
        'compatible source "orders"',
    ),
    "the columns of a source": (
        {"sources.orders.schema": "id LONG, price DOUBLE, at TIMESTAMP, note STRING"},
        ['compatible source "orders"'],
        ['incompatible source "orders"'],
    ),
    "the columns of a source in another order": same(
        {"sources.orders.schema": "price DOUBLE, id LONG, at TIMESTAMP"},
        'incompatible source "orders"',
    ),
    "the delay of a watermark": same(
        {"sources.orders.watermark.delay": "2 minutes"},
        'compatible source "orders"',
    ),
    "the type of a source": same(
        {
            "sources.orders": {
                "type": "generate",
                "sample": [{"id": 1, "price": 1.5, "at": "2024-01-01T00:00:00Z"}],
                "schema": ORDERS["schema"],
                "watermark": ORDERS["watermark"],
            }
        },
        'incompatible source "orders"',
    ),
    "the type of a transform above state": same(
        {"transforms.wide": {"type": "filter", "from": "orders", "where": "price > 0"}},
        'incompatible transform "wide"',
    ),
    "the number of partitions": Case({"runtime.partitions": 4}, ['compatible query "hourly"'], []),
    "the output mode": Case(
        {"sinks.counts": {**upserts("hourly"), "mode": "upsert"}},
        ['incompatible query "hourly"', 'compatible sink "counts"'],
        ['incompatible query "hourly"', 'compatible sink "counts"'],
    ),
    "another query": Case(
        {"transforms.daily": sql(HOURLY.format("orders")), "sinks.days": memory("daily")},
        ['compatible query "daily"'],
        ['compatible query "daily"'],
    ),
    "another sink on a query": Case(
        {"sinks.copy": memory("orders")}, [], ['compatible sink "copy"']
    ),
    "another name of a trunk": Case(
        {
            "transforms.hourly": None,
            "transforms.by_hour": sql(HOURLY.format("wide")),
            "sinks.counts.from": "by_hour",
        },
        ['incompatible sink "counts"', 'compatible query "by_hour"', 'compatible query "hourly"'],
        ['incompatible sink "counts"', 'compatible query "hourly"', 'compatible query "by_hour"'],
    ),
    "a sink that moves to a query with state": Case(
        {"transforms.once": {"type": "dedupe", "from": "orders"}, "sinks.out.from": "once"},
        ['incompatible sink "out"', 'compatible query "once"', 'compatible query "orders"'],
        ['incompatible sink "out"', 'compatible query "orders"', 'compatible query "once"'],
    ),
    "a sink that moves to a query that is there": Case(
        {"sinks.out.from": "hourly"},
        ['compatible query "orders"'],
        ['incompatible sink "out"', 'compatible query "orders"'],
    ),
    "no state any more": Case(
        {"transforms.hourly.sql": "SELECT id FROM wide"},
        ['compatible query "hourly"'],
        ['incompatible sink "counts"', 'compatible query "hourly"'],
    ),
    "a transform more above state": Case(
        {
            "transforms.checked": {"type": "filter", "from": "orders", "where": "id > 0"},
            "transforms.wide.sql": "SELECT * FROM checked WHERE price > 0",
        },
        ['compatible transform "checked"', 'compatible transform "wide"'],
        ['compatible transform "wide"', 'compatible transform "checked"'],
    ),
    "more state above state": Case(
        {
            "transforms.once": {"type": "dedupe", "from": "orders"},
            "transforms.wide.sql": "SELECT * FROM once WHERE price > 0",
        },
        ['incompatible transform "once"', 'compatible transform "wide"'],
        ['compatible transform "wide"', 'incompatible transform "once"'],
    ),
    "a source more": Case(
        {
            "sources.more": MORE,
            "transforms.wide.sql": "SELECT * FROM orders UNION ALL SELECT * FROM more",
        },
        ['compatible source "more"', 'compatible transform "wide"'],
        ['compatible transform "wide"', 'incompatible source "more"'],
    ),
    "a static table more": Case(
        {"transforms.wide.sql": "SELECT orders.* FROM orders JOIN names USING (id)"},
        ['compatible source "names"', 'compatible transform "wide"'],
        ['compatible transform "wide"', 'incompatible source "names"'],
    ),
}


def effects(before: Any, after: Any) -> list[str]:
    return [f"{change.effect} {change.subject}" for change in compare(before, after)]


@pytest.mark.quick(8)
@pytest.mark.parametrize("name", CASES)
def test_changes(name: str, tmp_path: Path) -> None:
    changes, forward, back = CASES[name]
    before = fingerprint(planned(tmp_path, BASE))
    after = fingerprint(planned(tmp_path, changed(BASE, changes)))
    assert sorted(effects(before, after)) == sorted(forward)
    assert sorted(effects(after, before)) == sorted(back)


def test_the_fingerprint_of_a_plan_survives_json(tmp_path: Path) -> None:
    plan = planned(tmp_path, BASE)
    kept = json.loads(json.dumps(fingerprint(plan)))
    assert compare(kept, fingerprint(plan)) == []


def test_a_change_names_the_options_and_the_consequence(tmp_path: Path) -> None:
    before = fingerprint(planned(tmp_path, BASE))
    changes = {"runtime.partitions": 4, "transforms.hourly.sql": HOURLY.format("orders")}
    after = fingerprint(planned(tmp_path, changed(BASE, changes)))
    whys = {change.subject: change.reason for change in compare(before, after)}
    assert whys['transform "hourly"'].startswith("inputs, sql changed; ")
    assert "partitions" in whys['query "hourly"']


def test_an_incompatible_change_is_marked() -> None:
    assert str(Change("a", "incompatible", "b")) == "- a: b"
    assert str(Change("a", "compatible", "b")) == "+ a: b"


def test_a_secret_is_compared_but_not_kept(tmp_path: Path) -> None:
    sources = {"orders": {**ORDERS, "rows": [{"id": 1, "note": "${secret:file/token}"}]}}
    document = {"sources": sources, "sinks": {"out": memory("orders")}}

    def kept(secret: str) -> Any:
        (tmp_path / "token").write_text(secret)
        return fingerprint(planned(tmp_path, document, PENSTOCK_SECRETS=str(tmp_path)))

    before = kept("sesame")
    assert "sesame" not in json.dumps(before)
    assert compare(before, kept("sesame")) == []
    assert effects(before, kept("mellon")) == ['compatible source "orders"']


FILES = {
    "sources": {"orders": {"type": "files", "path": "in/*.csv", "schema": "id LONG"}},
    "sinks": {"out": {"type": "files", "from": "orders", "path": "out"}},
}


def test_a_moved_project_has_the_same_fingerprint(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    before = fingerprint(planned(tmp_path / "one", FILES))
    assert str(tmp_path) not in json.dumps(before)
    assert compare(before, fingerprint(planned(tmp_path / "two", FILES))) == []
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert compare(before, fingerprint(planned(tmp_path / "link", FILES))) == []


def test_a_path_outside_the_project_is_compared(tmp_path: Path) -> None:
    before = fingerprint(planned(tmp_path, changed(FILES, {"sources.orders.path": "/data/in.csv"})))
    assert effects(before, fingerprint(planned(tmp_path, FILES))) == ['compatible source "orders"']


def test_absolute_paths_of_earlier_versions_are_the_same(tmp_path: Path) -> None:
    after = fingerprint(planned(tmp_path, FILES))
    earlier = json.loads(json.dumps(after).replace('"in/*', f'"{tmp_path}/in/*'))
    assert effects(earlier, after) == ['compatible source "orders"']
    assert compare(relative_paths(earlier, Project(tmp_path)), after) == []


def secret_plan(root: Path, secret: str) -> Any:
    sources = {"orders": {**ORDERS, "rows": [{"id": 1, "note": "${secret:file/token}"}]}}
    (root / "token").write_text(secret)
    document = {"sources": sources, "sinks": {"out": memory("orders")}}
    return planned(root, document, PENSTOCK_SECRETS=str(root))


def test_hash_of_a_secret_depends_on_the_key(tmp_path: Path) -> None:
    plan = secret_plan(tmp_path, "sesame")
    first, second = json.dumps(fingerprint(plan, b"1")), json.dumps(fingerprint(plan, b"2"))
    assert first != second
    assert "sha1" not in first and "hmac-sha256:" in first


def test_columns_of_a_primary_key_in_another_order(tmp_path: Path) -> None:
    document = changed(KEYED, {"sources.orders.primary_key": ["id", "city"]})
    before = fingerprint(planned(tmp_path, document))
    other = changed(KEYED, {"sources.orders.primary_key": ["city", "id"]})
    assert effects(before, fingerprint(planned(tmp_path, other))) == []


def test_another_key_of_a_sink_that_overwrites_rows(tmp_path: Path) -> None:
    document = {**BASE, "sinks": {"out": {**upserts("dear"), "mode": "upsert"}}}
    before = fingerprint(planned(tmp_path, document))
    other = fingerprint(planned(tmp_path, changed(document, {"sinks.out.primary_key": ["id"]})))
    assert effects(before, other) == ['incompatible sink "out"']
    append = changed(document, {"sinks.out.mode": "append"})
    assert effects(before, fingerprint(planned(tmp_path, append))) == ['compatible sink "out"']


def test_aggregates_that_a_sink_computes_again(tmp_path: Path) -> None:
    sink = {
        "type": "postgres_aggregate", "from": "dear", "url": "postgresql://localhost:1/x",
        "table": "t", "aggregate_table": "a", "aggregates": {"n": {"function": "count"}},
    }  # fmt: skip
    document = {**BASE, "sinks": {"out": sink}}
    before = fingerprint(planned(tmp_path, document))
    groups = changed(document, {"sinks.out.group_by": ["id"]})
    both = changed(groups, {"sinks.out.timeout": "9s"})
    other = changed(document, {"sinks.out.timeout": "9s"})
    plans = [fingerprint(planned(tmp_path, each)) for each in (groups, both, other)]
    assert [change.reason for after in plans for change in compare(before, after)] == [
        "group_by changed; computed again from all rows",
        "timeout, group_by changed; group_by computed again from all rows, the rest applies to new "
        "rows",
        "timeout changed; applies to new rows",
    ]


@pytest.mark.parametrize("old", [True, False])
def test_unchanged_secret_is_compatible_with_old_hashes(tmp_path: Path, old: bool) -> None:
    before = fingerprint(secret_plan(tmp_path, "sesame"), None if old else b"1")
    if old:
        before.pop("hash")
    same = comparable(secret_plan(tmp_path, "sesame"), before, b"1")
    assert compare(before, same) == []
    other = comparable(secret_plan(tmp_path, "mellon"), before, b"1")
    assert effects(before, other) == ['compatible source "orders"']


def path_plan(root: Path, secret: str) -> Any:
    """Returns a plan with a secret within a path and within SQL."""
    (root / "token").write_text(secret)
    document = {
        "sources": {
            "orders": {
                "type": "files", "path": "in/${secret:file/token}/*.csv", "schema": "id LONG",
            },
        },
        "transforms": {"all": sql("SELECT DISTINCT id, '${secret:file/token}' AS s FROM orders")},
        "sinks": {"out": {"type": "files", "from": "all", "path": "out"}},
    }  # fmt: skip
    return planned(root, document, PENSTOCK_SECRETS=str(root))


@pytest.mark.parametrize("key", [None, b"1"])
def test_a_secret_within_a_text_is_compared_but_not_kept(tmp_path: Path, key: bytes | None) -> None:
    before = fingerprint(path_plan(tmp_path, "sesame"), key)
    assert "sesame" not in json.dumps(before)
    assert compare(before, fingerprint(path_plan(tmp_path, "sesame"), key)) == []
    assert 'compatible source "orders"' in effects(
        before, fingerprint(path_plan(tmp_path, "mellon"), key)
    )


def test_a_secret_of_another_plan_does_not_change_the_fingerprint(tmp_path: Path) -> None:
    before = fingerprint(planned(tmp_path, FILES), b"1")
    remember_secret("in/*.csv")
    assert fingerprint(planned(tmp_path, FILES), b"1") == before


@pytest.mark.slow
def test_a_short_secret_is_not_hashed_within_a_text(tmp_path: Path) -> None:
    (query,) = fingerprint(path_plan(tmp_path, "in"), b"1")["queries"].values()
    assert query["nodes"]["orders"]["config"]["path"] == "in/in/*.csv"


def test_secrets_within_paths_of_earlier_versions_are_the_same(tmp_path: Path) -> None:
    before = fingerprint(path_plan(tmp_path, "sesame"), b"1", hash_parts=False)
    assert "in/sesame/" in json.dumps(before)
    assert compare(before, comparable(path_plan(tmp_path, "sesame"), before, b"1")) == []
    other = comparable(path_plan(tmp_path, "mellon"), before, b"1")
    assert 'compatible source "orders"' in effects(before, other)


UPDATING: dict[str, Any] = {
    "sources": {
        "orders": {
            "type": "files", "path": "in/*.jsonl", "watch": True, "schema": "id LONG, city STRING",
        },
    },
    "transforms": {
        "dear": sql("SELECT * FROM orders WHERE id > 5"),
        "counts": sql("SELECT city, count(*) AS n FROM dear GROUP BY city"),
        "many": sql("SELECT city FROM counts WHERE n > 3"),
        "ids": sql("SELECT count(*) AS n FROM orders"),
    },
    "sinks": {
        f"{name}_out": {"type": "files", "from": name, "path": name, "format": "debezium_json"}
        for name in ("many", "ids")
    },
}  # fmt: skip


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"transforms.counts.sql": "SELECT city, sum(id) AS n FROM dear GROUP BY city"},
            ['incompatible transform "counts"'], id="an aggregate",
        ),
        pytest.param(
            {"transforms.dear.sql": "SELECT * FROM orders WHERE id > 6"},
            ['incompatible transform "dear"'], id="a filter above the state",
        ),
        pytest.param(
            {"transforms.many.sql": "SELECT city FROM counts WHERE n > 4"},
            ['incompatible transform "many"'], id="a filter of changes",
        ),
        pytest.param(
                {"runtime.partitions": 3},
                ['compatible query "orders_changes"'],
                id="the partitions",
            ),
        pytest.param(
            {"runtime.updating_ttl": "1 day"},
            ['incompatible query "orders_changes"'], id="rows expire",
        ),
        pytest.param(
            {"transforms.ids": None, "sinks.ids_out": None},
            ['compatible transform "ids"', 'compatible sink "ids_out"'], id="one transform less",
        ),
        pytest.param(
            {"transforms.more": sql("SELECT max(id) AS n FROM orders"),
             "sinks.more_out": {"type": "print", "from": "more"}},
            ['incompatible transform "more"'], id="one transform more",
        ),
    ],
)  # fmt: skip
def test_state_of_updating_transforms(
    tmp_path: Path, changes: dict[str, Any], expected: list[str]
) -> None:
    before = fingerprint(planned(tmp_path, UPDATING))
    assert effects(before, fingerprint(planned(tmp_path, changed(UPDATING, changes)))) == expected


def test_a_change_that_concerns_several_queries_is_reported_once(tmp_path: Path) -> None:
    three = {
        "sources": {"events": {
            "type": "memory", "schema": "id LONG, at TIMESTAMP", "rows": [],
            "watermark": {"column": "at", "delay": "5s"},
        }},
        "transforms": {name: {
            "type": "sql",
            "sql": f"SELECT {name}(id) AS n FROM events GROUP BY window(at, '1 minute')",
        } for name in ("min", "max", "sum")},
        "sinks": {f"{name}_out": {"type": "blackhole", "from": name} for name in
                  ("min", "max", "sum")},
    }  # fmt: skip
    before = fingerprint(planned(tmp_path, three))
    assert len(before["queries"]) == 3
    after = fingerprint(planned(tmp_path, changed(three, {"sources.events.watermark.delay": "9s"})))
    assert [str(change) for change in compare(before, after)] == [
        '+ source "events": watermark changed; applies to new rows'
    ]


KEYED = changed(
    UPDATING, {"sources.orders.operation_column": "city", "sources.orders.primary_key": ["id"]}
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"schema": "city STRING, id LONG"},
            "compatible: columns changed; another order; columns of the state are found by name",
            id="another order",
        ),
        pytest.param(
            {"schema": "id LONG, city STRING, x INT"},
            'compatible: columns changed; "x" is new; columns of the state are found by name',
            id="a column more",
        ),
        pytest.param(
            {"schema": "id LONG NOT NULL, city STRING"},
            "compatible: columns changed; the same names and types; "
            "columns of the state are found by name",
            id="not null",
        ),
        pytest.param(
            {"schema": "id INT, city STRING"},
            'compatible: columns changed; "id" is missing or has another type; '
            "columns of the state are found by name",
            id="another type",
        ),
        pytest.param(
            {"schema": "id LONG, city STRING", "primary_key": ["city"]},
            "incompatible: primary_key changed; the state holds the rows of the old keys",
            id="another key",
        ),
        pytest.param(
            {"format": {"type": "json", "unknown": "reject"}, "on_error": "fail"},
            "compatible: format, on_error changed; applies to new rows",
            id="outside the state",
        ),
    ],
)
def test_changed_source_of_updating_transforms(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    before = fingerprint(planned(tmp_path, KEYED))
    options = {f"sources.orders.{name}": value for name, value in changes.items()}
    after = fingerprint(planned(tmp_path, changed(KEYED, options)))
    found = [change for change in compare(before, after) if change.subject == 'source "orders"']
    assert [f"{change.effect}: {change.reason}" for change in found] == [expected]


def test_columns_without_a_recorded_key_are_not_found_by_name(tmp_path: Path) -> None:
    """Operators of earlier versions have not stored the names of their columns."""
    before = fingerprint(planned(tmp_path, UPDATING))
    for query in before["queries"].values():
        for node in query["nodes"].values():
            del node["primary_key"]
    more = changed(UPDATING, {"sources.orders.schema": "city STRING, id LONG"})
    after = comparable(planned(tmp_path, more), before, b"")
    assert effects(before, after) == ['incompatible source "orders"']


@pytest.mark.parametrize(
    ("ttl", "expected"),
    [
        ({"updating_ttl": "1 day"}, []),
        ({"updating_ttl": "2 days"}, ['compatible query "orders_changes"']),
        ({}, ['incompatible query "orders_changes"']),
    ],
)
def test_ttl_of_updating_transforms(
    tmp_path: Path, ttl: dict[str, str], expected: list[str]
) -> None:
    expiring = changed(UPDATING, {"runtime.updating_ttl": "24 hours"})
    before = fingerprint(planned(tmp_path, expiring))
    after = changed(UPDATING, {"runtime": ttl})
    assert effects(before, fingerprint(planned(tmp_path, after))) == expected

"""Joins with keys of Redis, which are looked up for each batch."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from integration.pipelines import Workspace
from penstock.runtime.handle import RunHandle
from servers.redis import Redis

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  orders:
    {{type: files, path: in/*.jsonl, watch: {watch}, format: json, max_files: 1, order: name,
      schema: "id INT, user STRING, at TIMESTAMP", watermark: {{column: at}}}}
  users:
    type: redis
    url: {url}
    auth: {{username: made-up-user, password: made-up-password}}
    key: "{prefix}:{{user}}"
    schema: user STRING, name STRING, plan STRING, age INT
    primary_key: [user]
    lookup: {lookup}
transforms:
  joined: {{type: sql, sql: "{sql}"}}
sinks:
  out: {{type: memory, from: joined, name: out}}
"""
LEFT = "SELECT id, name, age FROM orders LEFT JOIN users USING (user)"


@pytest.fixture
def prefix() -> str:
    return f"users-{uuid.uuid4().hex[:8]}"


def put_user(redis: Redis, prefix: str, key: str, **values: Any) -> None:
    with redis.client() as client:
        client.set(f"{prefix}:{key}", json.dumps(values))


def put_orders(workspace: Workspace, number: int, *users: str | None, hour: int = 10) -> None:
    """Writes a file with an order of each user: one batch."""
    rows = [
        {"id": number * 10 + index, "user": user, "at": f"2026-01-01T{hour}:00:00Z"}
        for index, user in enumerate(users)
    ]
    workspace.put(f"in/{number}.jsonl", [json.dumps(row) for row in rows])


def pipeline(
    redis: Redis, prefix: str, sql: str = LEFT, *, watch: str = "false", lookup: str = "true"
) -> str:
    return PIPELINE.format(url=redis.url, prefix=prefix, sql=sql, watch=watch, lookup=lookup)


def rows(workspace: Workspace) -> list[tuple[Any, ...]]:
    return sorted(workspace.result().rows(), key=repr)


def test_rows_of_keys_are_joined(redis: Redis, workspace: Workspace, prefix: str) -> None:
    """Each kind of join, below views and in subqueries, with further conditions."""
    put_user(redis, prefix, "ann", name="Ann", plan="pro", age=30, user="other")
    put_user(redis, prefix, "bob", name="Bob", plan="free")
    put_orders(workspace, 1, "ann", "bob", "eve", None, "ann")
    queries = {
        "outer_": LEFT,
        "inner_": "SELECT o.id, u.name FROM orders o JOIN users u ON u.user = o.user "
        "AND u.plan = 'pro' AND o.id < 14",
        "filtered": "SELECT id, u.user FROM orders o LEFT JOIN users AS u ON upper(u.plan) = 'PRO' "
        "AND lower(o.user) = u.user WHERE o.id > 10",
        "adults": "SELECT user AS key, concat(name, '!') AS name FROM users WHERE age >= 18",
        "twice": "WITH both AS (SELECT o.id, a.name AS adult, u.name FROM orders o "
        "LEFT JOIN adults a ON a.key = o.user JOIN users u ON u.user = o.user) "
        "SELECT * FROM (SELECT id, adult, name FROM both)",
        "listed": "SELECT o.id, a.name FROM orders o, adults a, users u "
        "WHERE u.user = o.user AND a.key = u.user AND o.id <> 10",
        "anti": "SELECT id FROM orders LEFT ANTI JOIN users USING (user)",
        "semi": "SELECT id FROM orders LEFT SEMI JOIN users USING (user)",
        "right_": "SELECT users.name, id FROM users RIGHT JOIN orders ON users.user = orders.user",
    }
    text = pipeline(redis, prefix)
    head, _, _ = text.partition("transforms:")
    transforms = "".join(
        f'  {name}: {{type: sql, sql: "{sql}"}}\n' for name, sql in queries.items()
    )
    sinks = "".join(
        f"  {name}_out: {{type: memory, from: {name}, name: {name}}}\n"
        for name in queries
        if name != "adults"
    )
    workspace.run(f"{head}transforms:\n{transforms}sinks:\n{sinks}")
    found = {name: sorted(workspace.result(name).rows(), key=repr)
             for name in queries if name != "adults"}  # fmt: skip
    assert found == {
        "outer_": [(10, "Ann", 30), (11, "Bob", None), (12, None, None), (13, None, None),
                   (14, "Ann", 30)],
        "inner_": [(10, "Ann")],
        "filtered": [(11, None), (12, None), (13, None), (14, "ann")],
        "twice": [(10, "Ann!", "Ann"), (11, None, "Bob"), (14, "Ann!", "Ann")],
        "listed": [(14, "Ann!")],
        "anti": [(12,), (13,)],
        "semi": [(10,), (11,), (14,)],
        "right_": [("Ann", 10), ("Ann", 14), ("Bob", 11), (None, 12), (None, 13)],
    }  # fmt: skip


def test_rows_are_joined_before_windows_and_updates(
    redis: Redis, workspace: Workspace, prefix: str
) -> None:
    """The lookup is then part of the plan of the stream, or of the updating query."""
    put_user(redis, prefix, "ann", name="Ann")
    put_orders(workspace, 1, "ann", "eve", "ann")
    put_orders(workspace, 2, "ann", hour=12)
    text = pipeline(
        redis, prefix, "SELECT name, count(*) AS n FROM orders JOIN users USING (user) "
        "GROUP BY window(at, '1 hour'), name",
    ).replace(
        "sinks:\n",
        "  counted: {type: sql, sql: \"SELECT name, count(*) AS n FROM orders LEFT JOIN users "
        "USING (user) GROUP BY name\"}\nsinks:\n"
        "  counts: {type: memory, from: counted, name: counts, primary_key: [name], "
        "mode: upsert}\n",
    )  # fmt: skip
    workspace.run(text)
    assert rows(workspace) == [("Ann", 1), ("Ann", 2)]
    counts = workspace.result("counts").select("name", "n").rows()
    assert sorted(counts, key=repr) == [("Ann", 3), (None, 1)]


def test_each_batch_has_the_rows_of_its_time(
    redis: Redis, workspace: Workspace, prefix: str, handles: list[RunHandle]
) -> None:
    put_user(redis, prefix, "ann", name="Ann")
    put_orders(workspace, 1, "ann", "eve")
    handles.append(workspace.start(pipeline(redis, prefix, watch="true")))
    workspace.await_rows(handles[0], "out", 2)
    put_user(redis, prefix, "ann", name="Anna")
    put_user(redis, prefix, "eve", name="Eve")
    put_orders(workspace, 2, "ann", "eve")
    workspace.await_rows(handles[0], "out", 4)
    assert rows(workspace)[2:] == [(20, "Anna", None), (21, "Eve", None)]


def test_values_that_cannot_be_decoded_are_dead_letters(
    redis: Redis, workspace: Workspace, prefix: str
) -> None:
    put_user(redis, prefix, "ann", name="Ann", age="old")
    put_user(redis, prefix, "bob", name="Bob")
    put_orders(workspace, 1, "ann", "bob", "ann")
    put_orders(workspace, 2, "ann")
    workspace.run(pipeline(redis, prefix))
    assert rows(workspace) == [
        (10, None, None), (11, "Bob", None), (12, None, None), (20, None, None),
    ]  # fmt: skip
    dead_letters = {
        (each["node"], each["origin"], each["code"]) for each in workspace.dead_letters()
    }
    assert dead_letters == {("users", f"{prefix}:ann", "wrong-type")}


def test_a_run_continues_after_a_failure_of_the_server(
    workspace: Workspace, prefix: str, handles: list[RunHandle]
) -> None:
    with Redis() as server:
        put_user(server, prefix, "ann", name="Ann")
        put_orders(workspace, 1, "ann")
        text = pipeline(server, prefix, watch="true")
        handles.append(workspace.start(text + "runtime: {restart: {backoff: 100ms}}\n"))
        workspace.await_rows(handles[0], "out", 1)
        server.stop()
        put_orders(workspace, 2, "ann")
        execution = handles[0].metrics.queries["orders"]
        while execution.state != "retrying":
            assert handles[0].wait(0.05) is None
        server.start()
        workspace.await_rows(handles[0], "out", 2)
    assert rows(workspace) == [(10, "Ann", None), (20, "Ann", None)]


def test_a_wrong_password_ends_the_run(redis: Redis, workspace: Workspace, prefix: str) -> None:
    put_orders(workspace, 1, "ann")
    handle = workspace.start(pipeline(redis, prefix).replace("made-up-password", "wrong"))
    outcome = handle.wait(60)
    assert outcome is not None
    assert [error.code for error in outcome.errors.values()] == ["authentication"]


def test_a_script_of_arroyo(
    redis: Redis, workspace: Workspace, prefix: str, cli: Any, tmp_path: Path
) -> None:
    workspace.file = "pipeline.sql"
    with redis.client() as client:
        client.set(f"{prefix}-1", json.dumps({"name": "Ann", "plan": "Premium"}))
        client.set(f"{prefix}-2", json.dumps({"name": "Bob", "plan": "Basic"}))
    put_orders(workspace, 1, f"{prefix}-1", f"{prefix}-2", "none")
    workspace.run(f"""
        CREATE TABLE events (id INT, user TEXT)
          WITH (connector = 'single_file', path = 'in/1.jsonl', format = 'json');
        CREATE TEMPORARY TABLE customers (
            customer_id TEXT METADATA FROM 'key' PRIMARY KEY, name TEXT, plan TEXT
        ) WITH (
            connector = 'redis', address = '{redis.url}', username = 'made-up-user',
            password = 'made-up-password', format = 'json',
            'lookup.cache.max_bytes' = 1000000, 'lookup.cache.ttl' = interval '5' second
        );
        CREATE TABLE out WITH (connector = 'memory', name = 'out') AS
        SELECT e.id, c.customer_id, c.name FROM events e
        LEFT JOIN customers c ON e.user = c.customer_id WHERE c.plan = 'Premium';
    """)
    assert rows(workspace) == [(10, f"{prefix}-1", "Ann")]


def test_cases_give_the_rows_of_keys(cli: Any, tmp_path: Path) -> None:
    text = PIPELINE.format(
        url="redis://localhost:1", prefix="u", sql=LEFT, watch="false", lookup="true"
    )
    (tmp_path / "shop.yaml").write_text(f"""{text}
tests:
  - name: names
    given:
      orders: [{{id: 1, user: ann}}, {{id: 2, user: bob}}, {{id: 3}}]
      users: [{{user: ann, name: Ann, age: 3}}]
    expect:
      joined: [{{id: 1, name: Ann, age: 3}}, {{id: 2}}, {{id: 3}}]
""")
    tested = cli(tmp_path, "test", "shop.yaml")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    explained = cli(tmp_path, "explain", "shop.yaml", "--static")
    assert "lookup; user STRING, name STRING" in explained.stdout, explained.stdout

"""Access of a connection in steps: each has its result and the remedy, and nothing is changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from server_console import Console, wait_for
from servers.kafka import Kafka
from servers.postgres import DATABASE, Postgres

pytestmark = pytest.mark.slow
PASSWORD = "a password of the role"
Login = dict[str, Any]


@pytest.fixture
def schema(postgres: Postgres) -> str:
    return postgres.new_schema()


@pytest.fixture
def login(postgres: Postgres, schema: str) -> Iterator[Login]:
    """The login of a role that may use the schema, and nothing else."""
    with postgres.client("postgres") as root:
        root.execute(f"CREATE ROLE {schema} LOGIN PASSWORD '{PASSWORD}'")
        root.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
        root.execute(f"CREATE TABLE {schema}.t (id int)")
    url = f"postgresql://127.0.0.1:{postgres.port}/{DATABASE}"
    yield {"url": url, "auth": {"username": schema, "password": PASSWORD}}
    with postgres.client("postgres") as root:
        root.execute(f"DROP OWNED BY {schema} CASCADE; DROP ROLE {schema}")


def steps(console: Console, name: str, **options: Any) -> dict[str, Any]:
    found = console.post(f"connections/{name}/access", {"options": options})["steps"]
    return {each["step"]: each for each in found}


def states(found: dict[str, Any]) -> list[str]:
    return [each["state"] for each in found.values()]


def create(console: Console, name: str, type_: str, options: Login) -> None:
    console.post("connections", {"name": name, "type": type_, "options": options}, status=201)


def test_each_privilege_of_postgres(
    console: Console, postgres: Postgres, schema: str, login: Login
) -> None:
    create(console, "db", "postgres", login)
    table = f"{schema}.t"
    found = steps(console, "db", table=table)
    assert list(found) == ["reach", "log in", "read", "write", "create"]
    assert states(found) == ["ok", "ok", "failed", "failed", "failed"]
    hints = [found[name]["errors"][0]["hint"] for name in ("read", "write", "create")]
    assert hints[0] == f'Run GRANT SELECT ON "{schema}"."t" TO {schema}.'
    assert hints[2] == f"Run GRANT CREATE ON SCHEMA {schema} TO {schema}."
    with postgres.client("postgres") as root:
        for hint in hints:
            root.execute(hint.removeprefix("Run ").removesuffix("."))
    assert states(steps(console, "db", table=table)) == ["ok"] * 5
    absent = steps(console, "db", table=f"{schema}.new")
    assert states(absent) == ["ok", "ok", "failed", "not-tried", "ok"]
    with postgres.client("postgres") as root:
        assert root.execute(f"SELECT to_regclass('{schema}.new')").fetchone() == (None,)
    unnamed = steps(console, "db")
    assert states(unnamed) == ["ok", "ok", "not-tried", "not-tried", "not-tried"]
    assert "table" in unnamed["read"]["reason"]


def test_a_wrong_password_and_a_closed_port(console: Console, login: Login) -> None:
    create(console, "wrong", "postgres", {**login, "auth": {"username": "nobody", "password": "x"}})
    found = steps(console, "wrong", table="t")
    assert states(found) == ["ok", "failed", "not-tried", "not-tried", "not-tried"]
    assert found["log in"]["errors"][0]["code"] == "authentication"
    create(console, "closed", "postgres", {**login, "url": "postgresql://127.0.0.1:1/x"})
    assert states(steps(console, "closed", table="t")) == ["failed", *["not-tried"] * 4]


def test_topics_of_kafka(console: Console, own_kafka: Callable[..., Kafka]) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    kafka = own_kafka(
        properties={"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    )
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(30)
    create(console, "events", "kafka", {"brokers": kafka.address})
    assert states(steps(console, "events", topic="orders")) == ["ok"] * 5
    read = [_acl(operation) for operation in (AclOperation.READ, AclOperation.DESCRIBE)]
    for future in admin.create_acls(read).values():
        future.result(30)
    found = wait_for(
        lambda: (now := steps(console, "events", topic="orders"))["write"]["state"] != "ok" and now,
        lambda: "the rules have no effect",
    )
    assert states(found) == ["ok", "ok", "ok", "failed", "ok"]
    hint = 'Grant the user the operation WRITE on the topic "orders".'
    assert found["write"]["errors"][0]["hint"] == hint
    absent = steps(console, "events", topic="absent")
    assert states(absent)[:3] == ["ok", "ok", "failed"] and absent["create"]["state"] == "ok"
    assert "absent" not in admin.list_topics(timeout=30).topics
    create(console, "closed", "kafka", {"brokers": "127.0.0.1:1"})
    assert states(steps(console, "closed", topic="t")) == ["failed", *["not-tried"] * 4]


def _acl(operation: Any) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*",
        operation, AclPermissionType.ALLOW,
    )  # fmt: skip


def test_a_file_reports_no_privileges(console: Console, pipeline_directory: Path) -> None:
    with closing(sqlite3.connect(pipeline_directory / "shop.db")) as database:
        database.execute("CREATE TABLE t (id INTEGER)")
    create(console, "files", "sqlite", {"path": "shop.db"})
    found = steps(console, "files", table="t")
    assert states(found) == ["ok", "ok", *["not-tried"] * 3]
    assert "reports no privileges" in found["write"]["reason"]

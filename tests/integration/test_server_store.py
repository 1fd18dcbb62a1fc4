"""The store of the server, in SQLite and in PostgreSQL: one owner, upgrades, and failures."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from penstock.core.errors import PenstockError, StateError, UserError
from penstock.core.log import Silent
from penstock.server.server import open_server
from penstock.server.settings import Settings
from penstock.server.store import database as databases
from penstock.server.store import pipelines as stored_pipelines
from penstock.server.store.accounts import Accounts
from penstock.server.store.alerts import Alerts
from penstock.server.store.audit import Audit
from penstock.server.store.database import FILE, Database
from penstock.server.store.encryption import Encryption
from penstock.server.store.pipelines import Pipelines
from penstock.server.store.ready_rules import LAYOUT_OF_RULES, READY_RULES
from penstock.server.store.tables import LAYOUT, METADATA, STORE
from servers.postgres import DATABASE, Postgres

LAYOUT_1 = (Path(__file__).parent / "server_store_layout_1.sql").read_text()
AUDIT_1 = """CREATE TABLE audit (
    number {serial} PRIMARY KEY, time VARCHAR NOT NULL, "user" VARCHAR NOT NULL,
    action VARCHAR NOT NULL, subject VARCHAR NOT NULL, facts JSON NOT NULL
)"""
Open = Callable[[], Database]

pytestmark = pytest.mark.slow


def url_of(postgres: Postgres, schema: str) -> str:
    login = f"{quote(postgres.user)}:{quote(postgres.password)}"
    place = f"127.0.0.1:{postgres.port}/{quote(DATABASE)}"
    return f"postgresql://{login}@{place}?options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a store that has the tables and rows of the first layout."""
    url = None
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        schema = postgres.new_schema()
        url = url_of(postgres, schema)
        with postgres.client(options=f"-csearch_path={schema}") as client:
            client.execute(LAYOUT_1)
            client.execute(AUDIT_1.format(serial="SERIAL"))
    else:
        with closing(sqlite3.connect(tmp_path / FILE)) as client:
            client.executescript(LAYOUT_1 + AUDIT_1.format(serial="INTEGER"))
    with ExitStack() as stack:

        def open_() -> Database:
            stack.pop_all().close()
            database = Database.open(tmp_path, url)
            stack.callback(database.close)
            return database

        yield open_


def test_a_store_of_an_earlier_version_is_upgraded(open_store: Open, tmp_path: Path) -> None:
    database = open_store()
    pipelines, accounts, audit = Pipelines(database), Accounts(database), Audit(database)
    (pipeline,) = pipelines.all()
    assert (pipeline.wish, pipeline.version) == ("running", 1)
    assert pipelines.facts(pipeline.id, "1:2:3") is None, "facts are read again"
    assert pipelines.version(pipeline.id, 1).note == "first"
    assert [start.run for start in pipelines.starts(pipeline.id)] == ["run1"]
    for table in ("connections", "functions", "alerts", "messages", "shares"):
        assert database.rows(METADATA.tables[table].select()) == []
    rules = Alerts(database, Encryption.load(tmp_path, {}))
    assert [rule.name for rule in rules.rules()] == sorted(each[0] for each in READY_RULES)
    (first, *others) = rules.rules()
    for rule in others:
        rules.remove_rule(rule.name)
    rules.set_rule(replace(first, name="own"))
    rules.remove_rule(first.name)
    audit.record("ann", "apply", pipeline.id)
    audit.record("ann", "stop", pipeline.id)
    assert [entry["action"] for entry in audit.entries()] == ["stop", "apply"]
    assert accounts.user_of(accounts.issue("ann", "token")) is not None
    with pipelines.new_version(pipeline.id, "next", "ann", "") as version:
        assert version.number == 2
    with (
        pytest.raises(StateError),
        pipelines.new_version(pipeline.id, "lost", "ann", ""),
    ):
        raise StateError("made up")
    assert [each.number for each in pipelines.versions(pipeline.id, 10)] == [2, 1]
    backup = tmp_path / f"{FILE}.layout-1"
    if database.dialect == "postgresql":
        with pytest.raises(UserError, match="cannot have a value"):
            audit.record("a\0b", "x")
    else:
        with closing(sqlite3.connect(backup)) as client:
            assert client.execute("SELECT layout FROM store").fetchone() == (1,)
        assert backup.stat().st_mode & 0o077 == 0
    database = open_store()
    assert database.first(STORE.select()) == {"layout": LAYOUT}
    database.execute(STORE.update().values(layout=LAYOUT_OF_RULES - 1))
    rules = Alerts(open_store(), Encryption.load(tmp_path, {}))
    assert [rule.name for rule in rules.rules()] == ["own"], "rules of a user remain alone"
    rules.remove_rule("own")
    database = open_store()
    assert database.rows(METADATA.tables["rules"].select()) == [], "deleted rules do not return"
    assert len(Pipelines(database).all()) == 1
    database.execute(STORE.update().values(layout=99))
    with pytest.raises(StateError, match="newer version"):
        open_store()


def test_wishes_within_a_second_are_ordered(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_pipelines, "now", lambda: "2026-11-01T00:00:00Z")
    pipelines = Pipelines(open_store())
    (pipeline,) = pipelines.all()
    id, failure = pipeline.id, {"state": "failed"}
    for late in (
        lambda wishes: pipelines.end_fresh(id, wishes),
        lambda wishes: pipelines.give_up(id, wishes, failure),
        lambda wishes: pipelines.add_failed_start(id, wishes),
    ):
        pipelines.set_wish(id, "running", "ann", fresh=True)
        earlier = pipelines.get(id).wishes
        pipelines.set_wish(id, "running", "ann", fresh=True)
        late(earlier)
        found = pipelines.get(id)
        assert (found.wish, found.fresh, found.failure, found.failed_starts) == (
            "running", True, None, 0,
        )  # fmt: skip
    pipelines.give_up(id, pipelines.get(id).wishes, failure)
    assert (pipelines.get(id).wish, pipelines.get(id).wishes) == ("stopped", 7)


def test_a_failed_upgrade_changes_nothing(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.server.store import upgrade

    with monkeypatch.context() as patch:
        patch.setattr(upgrade, "STEPS", {2: ("SELECT nothing FROM nowhere",)})
        with pytest.raises(StateError) as raised:
            open_store()
        assert raised.value.code == "store-not-opened"
    assert len(Pipelines(open_store()).all()) == 1


def test_one_server_has_a_store_of_postgres(postgres: Postgres, tmp_path: Path) -> None:
    url = url_of(postgres, postgres.new_schema())
    first = Database.open(tmp_path / "a", url)
    try:
        with pytest.raises(StateError, match="another server uses the store: penstock serve") as e:
            Database.open(tmp_path / "b", url)
        assert e.value.code == "already-serving"
        first.lease.check()
        with postgres.client("postgres") as client:
            client.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'penstock serve%'"
            )
        first.lease.check()  # takes it again
        with postgres.client("postgres") as client:
            client.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'penstock serve%'"
            )
        second = Database.open(tmp_path / "b", url)
        with pytest.raises(StateError, match="another server has the lease"):
            first.lease.check()
        second.close()
        first.lease.check()
    finally:
        first.close()
    Database.open(tmp_path / "b", url).close()


def test_a_server_on_postgres(postgres: Postgres, server_settings: Settings) -> None:
    """The database fails and returns; wishes remain, and the server acts again."""
    from server_console import wait_for

    settings = replace(server_settings, store=url_of(postgres, postgres.new_schema()))
    with open_server(settings, Silent()) as server:
        views, changes = server.parts.views, server.parts.changes
        wait_for(lambda: views.ready and views.summaries(), lambda: "the server is not ready")
        (shop,) = views.summaries()
        changes.start(shop.id, "admin")
        wait_for(
            lambda: views.summary(shop.id).health.state == "running", lambda: "shop does not run"
        )
        with postgres.client("postgres") as client:
            client.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        changes.stop(shop.id, "admin")
        wait_for(
            lambda: views.summary(shop.id).health.state == "stopped", lambda: "shop does not stop"
        )


@pytest.mark.parametrize("fault", ["full", "locked"])
def test_a_full_and_a_locked_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(databases, "BUSY_MILLISECONDS", 100)
    database = Database.open(tmp_path)
    audit = Audit(database)
    audit.record("ann", "before")
    with ExitStack() as stack:
        if fault == "locked":
            other = stack.enter_context(closing(sqlite3.connect(tmp_path / FILE)))
            other.execute("BEGIN IMMEDIATE")
        else:
            with database.transaction() as connection:  # pages of this size only, for all later
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        error = _error(lambda: audit.record("ann", "during", facts="x" * 100_000))
        assert error.code == f"store-{fault}"
        assert "was not stored" in error.message
    if fault == "full":
        with database.transaction() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
    audit.record("ann", "after")
    assert [entry["action"] for entry in audit.entries()] == ["after", "before"]
    database.close()


def _error(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        call()
    return raised.value

"""Two servers on one store of PostgreSQL: one acts, and a pipeline never has two runs."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import StateError
from penstock.core.log import Silent
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.lock import ALREADY_RUNNING
from penstock.runtime.state.status import Owner, current_owner
from penstock.server.server import Server, open_server
from penstock.server.settings import Settings
from penstock.server.store import pipelines as stored_pipelines
from penstock.server.supervision import supervisor
from server_console import PIPELINE, wait_for
from servers.postgres import DATABASE, Postgres
from servers.s3 import Bucket

pytestmark = pytest.mark.slow
OpenServer = Callable[[str], Server]


@pytest.fixture(autouse=True)
def _quick_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PERIOD", 0.1)


@pytest.fixture
def store(postgres: Postgres) -> str:
    login = f"{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{DATABASE}"
    return f"postgresql://{login}?options=-csearch_path%3D{postgres.new_schema()}"


@pytest.fixture
def open_on(
    store: str, server_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenServer]:
    """Opens a server on a machine of a name, whose data are of that machine."""
    with ExitStack() as stack:

        def open_(host: str) -> Server:
            monkeypatch.setattr(socket, "gethostname", lambda: host)
            monkeypatch.setenv("PENSTOCK_CACHE", str(server_settings.directory / "cache" / host))
            data = server_settings.directory / ".penstock" / host
            settings = replace(server_settings, store=store, data=data)
            server = stack.enter_context(open_server(settings, Silent()))
            views = server.parts.views
            wait_for(lambda: views.ready and views.summaries(), lambda: "it is not ready")
            stack.callback(lambda: server.supervisor._closed.is_set() or _stop(server))
            return server

        yield open_


def _stop(server: Server) -> None:
    (shop,) = server.parts.views.summaries()
    server.parts.changes.stop(shop.id, "admin")
    _await(server, "stopped", "failed", "unknown", "complete")


def _await(server: Server, *states: str) -> Any:
    def found() -> Any:
        (shop,) = server.parts.views.summaries()
        return shop if shop.health.state in states else None

    return wait_for(found, lambda: f"{server.parts.views.summaries()} is not {states}")


def _start(server: Server) -> StateDirectory:
    """Starts the pipeline, and returns the state directory of its run."""
    (shop,) = server.parts.views.summaries()
    server.parts.changes.start(shop.id, "admin")
    _await(server, "running")
    entry = server.supervisor._catalog.entry(shop.id)
    assert entry is not None and entry.state is not None
    return StateDirectory(entry.state)


def _lose_lease(postgres: Postgres) -> None:
    with postgres.client("postgres") as client:
        client.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'penstock serve%'"
        )


def _compared(server: Server, times: int = 5) -> None:
    """Waits for some comparisons of a server."""
    for _ in range(times):
        server.supervisor.wake()
        time.sleep(0.15)


def _killed(server: Server) -> None:
    """Ends a server as kill -9 does: without a word to the store, and its runs continue."""
    server.supervisor._closed.set()
    server.supervisor._due.set()
    server.supervisor._thread.join()
    server.supervisor._lease.release()


def _leave_run(server: Server) -> tuple[StateDirectory, Owner]:
    """Starts the pipeline, and kills the server: the run continues without it."""
    state = _start(server)
    owner = current_owner(state)
    assert owner is not None and owner.pid is not None
    _killed(server)
    return state, owner


def test_a_run_on_another_machine_is_not_started_a_second_time(
    open_on: OpenServer, tmp_path: Path
) -> None:
    state, owner = _leave_run(open_on("a"))
    os.kill(owner.pid, signal.SIGSTOP)  # it writes nothing into the state of the second machine
    state.root.rename(tmp_path / "of-the-other-machine")
    second = open_on("b")
    shop = _await(second, "unknown")
    _compared(second)
    assert not state.root.exists(), "no run has started"
    assert (shop.health.reason.code, "the server on a" in shop.health.reason.message) == (
        "runs-elsewhere", True,
    )  # fmt: skip
    changes = second.parts.changes
    changes.apply(shop.id, PIPELINE.format(name="shop") + "# changed\n", changes_user(second))
    _compared(second)
    assert not state.root.exists(), "a new version is no confirmation"
    changes.stop(shop.id, "admin")
    _compared(second)
    assert _await(second, "unknown").health.reason.code == "runs-elsewhere", "it may still run"
    os.kill(owner.pid, signal.SIGKILL)
    assert _start(second).root.exists()


def changes_user(server: Server) -> Any:
    accounts = server.parts.accounts
    return accounts.user_of(accounts.issue("admin", "token", "of a test"))


def test_a_run_in_a_shared_directory_is_adopted_and_restarted(open_on: OpenServer) -> None:
    state, owner = _leave_run(open_on("a"))
    second = open_on("b")
    _await(second, "running")
    _compared(second)
    assert current_owner(state) == owner, "it is the same run"
    os.kill(owner.pid, signal.SIGKILL)
    wait_for(lambda: current_owner(state) not in (None, owner), lambda: "it is not started again")


def test_a_server_without_the_lease_changes_nothing(
    open_on: OpenServer, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_on("a")
    (shop,) = first.parts.views.summaries()
    with monkeypatch.context() as patch:
        patch.setattr(first.supervisor._lease, "_take", lambda: "the gap of a failover")
        _lose_lease(postgres)
        wait_for(lambda: first.supervisor._lease.is_lost, lambda: "the lease is not lost")
        second = open_on("b")
    state = _start(second)
    owner = current_owner(state)
    changes, text = first.parts.changes, PIPELINE.format(name="shop") + "# changed\n"
    user = changes_user(second)
    file = first.parts.settings.directory / "shop" / "shop.yaml"
    before = file.read_text()
    for change in (
        lambda: changes.start(shop.id, "ann"),
        lambda: changes.stop(shop.id, "ann"),
        lambda: changes.apply(shop.id, text, user),
        lambda: first.parts.audit.record("ann", "start"),
    ):
        with pytest.raises(
            StateError, match=r"another server has the lease of the store: .* b,"
        ) as e:
            change()
        assert e.value.code == "lease-lost"
    assert file.read_text() == before
    assert first.parts.views.summary(shop.id).wish == "running", "it reads the changes of the other"
    second.parts.changes.stop(shop.id, "ann")
    _await(second, "stopped")
    assert first.parts.views.summary(shop.id).wish == "stopped"
    second.parts.changes.start(shop.id, "ann")
    _await(second, "running")
    _killed(second)
    wait_for(lambda: not first.supervisor._lease.is_lost, lambda: "it does not take the lease")
    _await(first, "running")
    _compared(first)
    now = current_owner(state)
    assert now is not None and now != owner, "the run of the other server continues"
    assert len([s for s in first.parts.views._pipelines.starts(shop.id) if not s.ended]) == 1


def test_the_clock_of_another_machine_orders_no_starts(
    open_on: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_on("a")
    with monkeypatch.context() as patch:
        patch.setattr(stored_pipelines, "now", lambda: "2099-01-01T00:00:00Z")
        state = _start(first)
    owner = current_owner(state)
    assert owner is not None and owner.pid is not None
    _killed(first)
    os.kill(owner.pid, signal.SIGKILL)
    second = open_on("b")
    wait_for(lambda: current_owner(state) not in (None, owner), lambda: "it is not restarted")
    owner = current_owner(state)
    _killed(second)
    third = open_on("c")
    _await(third, "running")
    third.parts.changes.stop(_await(third, "running").id, "ann")
    _await(third, "stopped")
    assert current_owner(state) is None


def test_a_state_in_an_object_store_has_one_run(
    open_on: OpenServer, server_settings: Settings, bucket: Bucket
) -> None:
    """The run of the second server waits until that on the first machine has ended."""
    storage = json.dumps(bucket.server.storage)
    stored = f"runtime: {{state: {bucket.url}/states, storage: {storage}}}\n"
    (server_settings.directory / "shop" / "shop.yaml").write_text(
        PIPELINE.format(name="shop") + stored
    )
    state, owner = _leave_run(open_on("a"))
    second = open_on("b")
    shop = _await(second, "retrying")
    assert shop.health.reason.code == ALREADY_RUNNING
    assert f"process {owner.pid} on " in shop.health.reason.message
    assert shop.wish == "running"
    assert current_owner(state) == owner, "the run of the first machine continues"
    os.kill(owner.pid, signal.SIGKILL)
    _await(second, "running")
    entry = second.supervisor._catalog.entry(shop.id)
    assert entry is not None and entry.state is not None and entry.state != state.root
    later = current_owner(StateDirectory(entry.state))
    assert later is not None and later.pid != owner.pid
    assert current_owner(state) is None

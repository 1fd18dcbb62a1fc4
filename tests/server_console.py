"""A server on a directory of made-up pipelines, whose runs need no Spark."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

import stand_in_run
from penstock.core.log import Silent

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

    from penstock.server.server import Server
    from penstock.server.settings import Settings
    from penstock.server.workers.pool import WorkerPool

PIPELINE = """
name: {name}
sources:
  orders: {{type: generate, fields: {{id: {{type: sequence}}}}}}
sinks:
  out: {{type: files, from: orders, path: out, format: json}}
"""
STAND_IN_SESSION = (sys.executable, str(Path(__file__).parent / "stand_in_session.py"))
STAND_IN_HOST = (sys.executable, str(Path(__file__).parent / "stand_in_host.py"))
STAND_IN = (sys.executable, str(Path(__file__).parent / "stand_in_run.py"))
os.environ.setdefault(stand_in_run.TESTS, str(os.getpid()))


class Console:
    """A client of a server, with the token of its administrator."""

    def __init__(self, server: Server, client: TestClient) -> None:
        self.server, self.client = server, client

    def get(self, path: str, **arguments: Any) -> Any:
        return self._content(self.client.get(f"/api/v1/{path}", **arguments))

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        response = self.client.post(f"/api/v1/{path}", json={} if body is None else body)
        assert response.status_code == status, response.text
        return response.json() if response.content else None

    def id(self, name: str = "shop") -> str:
        return next(each["id"] for each in self.get("pipelines") if each["name"] == name)

    def health(self, name: str = "shop") -> dict[str, Any]:
        pipelines = self.get("pipelines")
        health: dict[str, Any] = next(p["health"] for p in pipelines if p["name"] == name)
        return health

    def await_health(self, *states: str, name: str = "shop") -> dict[str, Any]:
        """Waits for one of the states of a pipeline. Requests it once the server has it."""
        id, views = self.id(name), self.server.parts.views

        def found() -> dict[str, Any] | None:
            if views.summary(id).health.state not in states:
                return None
            return health if (health := self.health(name))["state"] in states else None

        return wait_for(found, lambda: f"{name} is {self.health(name)}, not {states}")

    @staticmethod
    def _content(response: Any) -> Any:
        assert response.status_code == 200, response.text
        return response.json()


def wait_for(found: Callable[[], Any], report: Callable[[], str], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, report()
        time.sleep(0.05)
    return value


@pytest.fixture
def pipeline_directory(tmp_path: Path) -> Path:
    add_pipeline(tmp_path)
    return tmp_path


def add_pipeline(
    directory: Path, name: str = "shop", behavior: str = "run", share: str | None = None
) -> None:
    """Adds a pipeline whose runs behave as `stand_in_run` describes."""
    (directory / name).mkdir()
    shared = "" if share is None else f"runtime: {{share: {share}}}\n"
    (directory / name / f"{name}.yaml").write_text(PIPELINE.format(name=name) + shared)
    behave(directory, behavior, name)


def behave(directory: Path, behavior: str, name: str = "shop") -> None:
    """Sets the behavior of the next run of a pipeline."""
    (directory / name / "behavior").write_text(behavior)


@pytest.fixture
def server_settings(pipeline_directory: Path) -> Settings:
    return stand_in_settings(pipeline_directory)


def stand_in_settings(directory: Path) -> Settings:
    """Returns the settings of a server of a directory whose runs are stand-ins."""
    from penstock.server.settings import Settings

    return Settings(
        directory, directory / ".penstock" / "server", command=STAND_IN,
        session_command=STAND_IN_SESSION, host_command=STAND_IN_HOST,
    )  # fmt: skip


@pytest.fixture
def static_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes checks of plans static ones, which start no Spark."""
    from penstock.server.changes import Changes

    check = Changes._check
    monkeypatch.setattr(Changes, "_check", lambda self, draft, level: check(self, draft, "static"))


OpenConsole = Callable[..., Console]


@pytest.fixture(scope="session")
def server_workers() -> Iterator[WorkerPool]:
    """A worker of all servers: its start takes as long as many requests."""
    from penstock.server.workers.pool import WorkerPool

    pool = WorkerPool(1, os.environ)
    yield pool
    pool.close()


@pytest.fixture
def open_console(server_settings: Settings, server_workers: WorkerPool) -> Iterator[OpenConsole]:
    """Opens servers, one after the other, and stops all runs at the end."""
    with opening_consoles(server_settings, server_workers) as open_:
        yield open_


@contextmanager
def opening_consoles(settings: Settings, workers: WorkerPool) -> Iterator[OpenConsole]:
    """Yields a function that opens servers, one after the other. Stops all runs at the end."""
    from anyio.from_thread import start_blocking_portal
    from argon2 import PasswordHasher
    from argon2.profiles import CHEAPEST
    from fastapi.testclient import TestClient

    from penstock.server.api.application import make_application
    from penstock.server.server import TOKEN_FILE, open_server
    from penstock.server.store import accounts

    consoles: list[Console] = []
    quick = PasswordHasher.from_parameters(CHEAPEST)  # others take 0.2 s for each password
    with (
        patch.object(accounts, "_HASHER", quick),
        start_blocking_portal() as portal,  # a client has a thread for each request otherwise
        ExitStack() as stack,
    ):

        def open_() -> Console:
            stack.pop_all().close()
            server = stack.enter_context(open_server(settings, Silent(), workers))
            app = make_application(server.parts)
            client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
            client.portal = portal
            token = (settings.data / TOKEN_FILE).read_text()
            client.headers["Authorization"] = f"Bearer {token}"
            wait_for(lambda: server.parts.views.ready, lambda: "the server is not ready")
            consoles.append(Console(server, client))
            return consoles[-1]

        yield open_
        console = consoles[-1] if consoles else open_()
        pipelines = console.get("pipelines")
        for each in pipelines:
            console.post(f"pipelines/{each['id']}/stop")
        for each in pipelines:
            console.await_health(
                "stopped", "failed", "complete", "crash-looping", "unknown", name=each["name"]
            )


@pytest.fixture
def console(open_console: OpenConsole) -> Console:
    return open_console()

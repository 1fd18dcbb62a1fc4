"""The web console in a browser: built files, a server that listens, checks of accessibility."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server_console import Console, wait_for
from servers.browser import chromium
from servers.install import unavailable
from servers.packages import npm_package
from servers.server import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
SERIOUS = ("serious", "critical")
PASSWORD = "a password of a test"
PAGES = (
    "", "?q=none", "new", "connections", "functions", "alerts", "users", "tokens", "audit",
    "password", "none",
)  # fmt: skip
TABS = (
    "graph", "graph?view=list", "metrics", "editor", "versions", "runs", "logs", "dead-letters",
)  # fmt: skip


def console_addresses(*pipelines: str) -> list[str]:
    """Returns the addresses of all pages after a login, with each tab of some pipelines."""
    tabs = [f"/pipelines/{id}/{tab}" for id in pipelines for tab in TABS]
    return [*(f"/{page}" for page in PAGES), *tabs]


@pytest.fixture(scope="session")
def built_console() -> None:
    """Builds the console, unless it is built for its sources."""
    from penstock.server.console import routes

    _build("the console", "console/build.py")
    routes.built_assets.cache_clear()


@pytest.fixture(scope="session")
def built_documentation() -> None:
    """Builds the documentation site, unless it is built for its sources."""
    from penstock.server.documentation import routes

    _build("the documentation", "docs/build.py", "--site")
    routes.built_documentation.cache_clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser. It is not of the session: until its end its thread has a running event loop."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that reports each error of a script."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, locale="en-US",
        reduced_motion="reduce",  # a turning sign costs a core while Spark starts
    )  # fmt: skip
    context.set_default_timeout(120_000)  # a check of a plan starts Spark
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


@contextmanager
def listening(console: Console) -> Iterator[str]:
    """Lets the server of a console listen during the block, at the address that it yields."""
    import uvicorn

    from penstock.server.server import http_config

    port, app = free_port(), console.client.app
    streams = app.state.streams  # type: ignore[attr-defined]
    streams.closed.clear()
    config = http_config(app, replace(console.server.parts.settings, port=port))
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started, lambda: "the server does not listen")
        yield f"http://localhost:{port}"
    finally:
        streams.close_all()
        server.should_exit = True
        thread.join(20)


def log_in(page: Page, address: str, console: Console) -> None:
    """Logs in by the code of the first login, and sets a password."""
    code = console.server.parts.accounts.issue("admin", "code")
    page.goto(f"{address}/login#code={code}")
    page.get_by_label("New password").fill(PASSWORD)
    assert "code=" not in page.url
    page.get_by_label("Repeat the password").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    page.get_by_role("heading", name="Pipelines").wait_for()


def type_text(page: Page, text: str) -> None:
    """Replaces the text of the editor, as a user who pastes."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def serious_findings(page: Page) -> list[str]:
    """Returns the serious findings of axe on a page, with the elements that they concern."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run({resultTypes: ['violations']}).then((result) => result.violations)"
    )
    return [
        f"{each['id']}: {node['html'][:200]} ({node['failureSummary'][:300]})"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


def _build(name: str, script: str, *words: str) -> None:
    command = [sys.executable, str(ROOT / script), *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        unavailable(f"{name} could not be built: {answer.stderr[-2000:]}", "see the output")


def _axe() -> str:
    package = ROOT / "console" / "node_modules" / "axe-core"
    if not package.exists():
        lock = json.loads((ROOT / "console" / "package-lock.json").read_text())
        version = lock["packages"]["node_modules/axe-core"]["version"]
        package = npm_package("axe-core", version)
    return (package / "axe.min.js").read_text()

"""The web console in a browser: built files, a server that listens, checks of accessibility."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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


@pytest.fixture(scope="session")
def built_console() -> None:
    """Builds the console, unless it is built for its sources."""
    from penstock.server.console import routes

    command = [sys.executable, str(ROOT / "console" / "build.py")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        unavailable(f"the console could not be built: {answer.stderr[-2000:]}", "see the output")
    routes.built_assets.cache_clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser. It is not of the session: until its end its thread has a running event loop."""
    with chromium() as started:
        yield started


@contextmanager
def listening(console: Console) -> Iterator[str]:
    """Lets the server of a console listen during the block, at the address that it yields."""
    import uvicorn

    port = free_port()
    config = uvicorn.Config(
        console.client.app, port=port, log_level="error", lifespan="off", ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started, lambda: "the server does not listen")
        yield f"http://localhost:{port}"
    finally:
        console.client.app.state.streams.close_all()  # type: ignore[attr-defined]
        server.should_exit = True
        thread.join(20)


def serious_findings(page: Page) -> list[str]:
    """Returns the serious findings of axe on a page, with the elements that they concern."""
    page.evaluate(_axe())
    found: list[dict[str, Any]] = page.evaluate("axe.run().then((result) => result.violations)")
    return [
        f"{each['id']}: {node['html'][:200]} ({node['failureSummary'][:300]})"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


def _axe() -> str:
    package = ROOT / "console" / "node_modules" / "axe-core"
    if not package.exists():
        lock = json.loads((ROOT / "console" / "package-lock.json").read_text())
        version = lock["packages"]["node_modules/axe-core"]["version"]
        package = npm_package("axe-core", version)
    return (package / "axe.min.js").read_text()

"""The files of the web console: headers, compression, and the page for all other paths."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from penstock.core.log import Silent
from penstock.server.api.application import make_application
from penstock.server.console import routes
from penstock.server.console.assets import load_assets
from penstock.server.parts import Parts
from penstock.server.settings import Settings

SCRIPT = b"console.log('x')\n" * 50


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server with a built console. No route of the console needs the other parts."""
    directory = tmp_path_factory.mktemp("server")
    static = directory / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<title>page</title>")
    (static / "manifest.json").write_text("{}")
    (static / "assets" / "index-1a2b.js").write_bytes(SCRIPT)
    (static / "assets" / "index-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (static / "assets" / "logo-3c4d.svg").write_text("<svg/>")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "built_assets", lambda: load_assets(static))
        with _client(directory) as client:
            yield client


def _client(directory: Path) -> TestClient:
    nothing: Any = dict.fromkeys(Parts.__dataclass_fields__)
    settings = Settings(directory, directory / "data")
    parts = Parts(**{**nothing, "settings": settings, "log": Silent()})
    return TestClient(
        make_application(parts), base_url="http://localhost", raise_server_exceptions=False
    )


@pytest.mark.parametrize("path", ["/", "/login", "/pipelines/5ba1/editor", "/no/such/page"])
def test_a_path_of_the_console_is_its_page(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (200, "<title>page</title>")
    assert answer.headers["cache-control"] == "no-store"
    assert "script-src" not in answer.headers["content-security-policy"], "default-src 'self'"
    assert client.head(path).status_code == 200


def test_files_are_kept_by_browsers(client: TestClient) -> None:
    answer = client.get("/assets/index-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert (answer.status_code, answer.content) == (200, SCRIPT)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "content-encoding" not in answer.headers


def test_files_are_compressed_for_browsers_that_accept_it(client: TestClient) -> None:
    answer = client.get("/assets/index-1a2b.js", headers={"Accept-Encoding": "br, GZIP;q=0.5"})
    assert (answer.headers["content-encoding"], answer.content) == ("gzip", SCRIPT)
    assert int(answer.headers["content-length"]) < len(SCRIPT)
    assert answer.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in client.get("/assets/logo-3c4d.svg").headers


@pytest.mark.quick(1)
@pytest.mark.parametrize("path", [
    "/assets/none.js", "/assets/index-1a2b.js.gz", "/assets/..%2Findex.html", "/assets/a/b",
    "/assets", "/api", "/api/v1/none", "/api/v2/pipelines",
])  # fmt: skip
def test_other_paths_are_errors(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (404, "no-such-path")


def test_without_files_the_page_has_the_command_that_builds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "built_assets", lambda: load_assets(tmp_path))
    with _client(tmp_path) as client:
        assert "./dev console" in client.get("/pipelines/5ba1").text
        assert client.get("/assets/index-1a2b.js").status_code == 404

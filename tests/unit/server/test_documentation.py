"""The documentation: its pages below /docs, and the routes that pages of other tools name."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from penstock.core.log import Silent
from penstock.server.api.application import make_application
from penstock.server.api.components import describe_api
from penstock.server.documentation import routes
from penstock.server.parts import Parts
from penstock.server.settings import Settings

ROOT = Path(__file__).parents[3]
PAGE = b"<title>Kafka</title>" * 9
ROUTE = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) (/api/v1/[^`\s]+|/health|/ready|/metrics)`")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    nothing: Any = dict.fromkeys(Parts.__dataclass_fields__)
    settings = Settings(tmp_path, tmp_path / "data")
    parts = Parts(**{**nothing, "settings": settings, "log": Silent()})
    app = make_application(parts)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A built site: a page, a script with a hashed name, an image, and the page of errors."""
    static = tmp_path / "static"
    for name in ("index.html.gz", "howto/kafka/index.html.gz", "assets/page.1a2b.js.gz"):
        (static / name).parent.mkdir(parents=True, exist_ok=True)
        (static / name).write_bytes(gzip.compress(PAGE))
    (static / "logo.png").write_bytes(b"png")
    (static / "404.html.gz").write_bytes(gzip.compress(b"no such page"))
    found = dict(routes._files(static, ""))
    monkeypatch.setattr(routes, "built_documentation", lambda: found)


@pytest.mark.usefixtures("site")
def test_pages_and_files(client: TestClient) -> None:
    page = client.get("/docs/howto/kafka/", headers={"Accept-Encoding": "gzip"})
    assert (page.status_code, page.content, page.headers["content-encoding"]) == (200, PAGE, "gzip")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-cache"
    plain = client.get("/docs/", headers={"Accept-Encoding": "identity"})
    assert plain.content == PAGE and "content-encoding" not in plain.headers
    script = client.get("/docs/assets/page.1a2b.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert "unsafe" not in script.headers["content-security-policy"].partition("style-src")[0]
    assert client.get("/docs/logo.png").content == b"png"


@pytest.mark.usefixtures("site")
def test_other_paths(client: TestClient) -> None:
    for path, to in (("/docs", "/docs/"), ("/docs/howto/kafka", "/docs/howto/kafka/")):
        answer = client.get(path, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (308, to)
    missing = client.get("/docs/howto/none/index.html")
    assert (missing.status_code, missing.text) == (404, "no such page")
    for path in ("/docs/none.js", "/docs/..%2F..%2Frefused.py", "/docs/%2e%2e/routes.py"):
        assert client.get(path).status_code == 404, path


def test_a_site_that_is_not_built(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "built_documentation", dict)
    assert "./dev docs --site" in client.get("/docs/").text


@pytest.mark.slow
def test_the_replacements_of_other_control_planes_exist(client: TestClient) -> None:
    """Each route of docs/howto/control-planes.md is one of the OpenAPI description."""
    page = (ROOT / "docs" / "howto" / "control-planes.md").read_text()
    named = {(method.lower(), path) for method, path in ROUTE.findall(page)}
    request: Any = type("Request", (), {"app": client.app})
    paths = describe_api(request, None)["paths"]  # type: ignore[arg-type]
    known = {(method, path) for path, methods in paths.items() for method in methods}
    assert len(named) > 25
    assert not named - known

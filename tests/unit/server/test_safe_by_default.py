"""Protection that no option turns off: no WebSocket, no code in pages, no tokens in addresses."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocketDisconnect

from penstock.core.errors import UserError
from penstock.server.api.application import ROUTERS
from penstock.server.api.events import STREAMS_PER_USER, Streams
from penstock.server.api.security import HEADERS, RequestError
from penstock.server.console.assets import built_files
from server_console import Console, OpenConsole
from web_console import built_console

__all__ = ["built_console"]
pytestmark = pytest.mark.slow
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
"""The headers of the handshake of a WebSocket."""


def test_there_is_no_websocket(console: Console) -> None:
    routes = [route for router in ROUTERS for route in router.routes]
    assert [route for route in routes if isinstance(route, WebSocketRoute)] == []
    assert all(isinstance(route, APIRoute) for route in routes)
    for path in ("/", "/api/v1/events", f"/api/v1/pipelines/{console.id()}/tap?node=orders"):
        with pytest.raises((WebSocketDisconnect, RuntimeError, AssertionError)):
            console.client.websocket_connect(path, headers=UPGRADE).__enter__()


def test_pages_run_no_code_of_others(console: Console) -> None:
    """The CSP permits scripts of the server alone, for pages, errors and the API."""
    for path in ("/", "/pipelines/x", "/api/v1/pipelines", "/api/v1/nothing", "/docs/"):
        answer = console.client.get(path)
        rules = dict(
            rule.strip().split(" ", 1)
            for rule in answer.headers["content-security-policy"].split(";")
        )
        assert rules["default-src"] == "'self'", path
        assert "script-src" not in rules, "scripts have the rule of default-src"
        assert not {"'unsafe-inline'", "'unsafe-eval'"} & {*rules["default-src"].split()}
        assert (rules["object-src"], rules["base-uri"]) == ("'none'", "'none'")
        assert rules["frame-ancestors"] == "'none'"
        assert {
            name: answer.headers[name] for name in HEADERS if name in answer.headers
        }.keys() == (HEADERS.keys())
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.usefixtures("built_console")
def test_the_page_has_no_inline_script() -> None:
    text = (built_files() / "index.html").read_text()
    scripts = [part.split(">", 1) for part in text.split("<script")[1:]]
    assert scripts
    assert [content for head, content in scripts if not content.startswith("</script>")] == []
    assert " on" not in text.split("<body", 1)[1].replace(" only", "")


def test_tokens_are_no_part_of_an_address(console: Console) -> None:
    token = console.client.headers.pop("Authorization").removeprefix("Bearer ")
    for query in ({"token": token}, {"access_token": token}, {"Authorization": f"Bearer {token}"}):
        assert console.client.get("/api/v1/pipelines", params=query).status_code == 401
    basic = {"Authorization": f"Basic {token}"}
    assert console.client.get("/api/v1/pipelines", headers=basic).status_code == 401
    console.client.headers["Authorization"] = f"Bearer {token}"


def test_filters_are_texts(console: Console) -> None:
    """The filter of logs is no expression: signs of patterns have no meaning."""
    directory = console.server.parts.settings.logs / console.id()
    directory.mkdir(parents=True)
    (directory / "log.jsonl").write_text('{"event": "a.*b", "level": "info"}\n{"event": "aXb"}\n')
    for text, found in (("a.*b", ["a.*b"]), (".*", ["a.*b"]), ("(", []), ("aXb", ["aXb"])):
        lines = console.get(f"pipelines/{console.id()}/logs", params={"text": text})
        assert [line["event"] for line in lines] == found


def test_the_audit_is_not_changed(console: Console) -> None:
    """No route changes or removes entries, and entries have no payloads."""
    paths = console.get("openapi.json")["paths"]
    assert {method for path in paths if "audit" in path for method in paths[path]} == {"get"}
    console.post(f"pipelines/{console.id()}/check", {"text": "password: hunter2222"})
    console.client.get(f"/api/v1/pipelines/{console.id()}/dead-letters")
    entries = console.get("audit")
    assert "list dead letters" in {each["action"] for each in entries}
    assert "hunter2222" not in str(entries)


def test_a_user_has_some_streams_at_a_time() -> None:
    streams = Streams()
    for _ in range(STREAMS_PER_USER):
        streams.open("ann")
    with pytest.raises(RequestError) as raised:
        streams.open("ann")
    assert (raised.value.status, raised.value.code) == (429, "too-many-streams")
    streams.open("bob")
    streams.close("ann")
    streams.open("ann")


def test_no_plain_http_beyond_this_machine(open_console: OpenConsole) -> None:
    from penstock.cli.serve import serve

    open_console()
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(UserError) as raised:
            serve(host=host)
        assert raised.value.code == "insecure-http"

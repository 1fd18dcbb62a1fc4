"""Hostile requests, files and logs: no defect of the server, no hang, nothing from elsewhere."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from penstock.core.errors import Transient
from penstock.server.store.database import Database
from penstock.server.store.pipelines import Pipelines
from penstock.server.workers.pool import WorkerPool
from server_console import PIPELINE, Console
from web_console import listening

pytestmark = pytest.mark.slow

STRANGE = (
    "", "\x00", "../../etc/passwd", "%2e%2e%2f", "x" * 5000, "ü\u202e", "-1", str(10**30), "1e999",
)  # fmt: skip
BODIES = (
    '{"text": "\\ud800"}', '{"text": "a\\u0000b"}', "[" * 100_000, '{"text": ' + "[" * 50_000,
    "nul", "", '{"text": 1e999, "name": NaN}', '{"text": "[[[", "name": "../x"}',
)  # fmt: skip
SLOW_SQL = "INSERT INTO x SELECT " + "1+" * 20_000 + "1"


def test_strange_values_are_errors_of_the_client(console: Console) -> None:
    described = console.get("openapi.json")["paths"]
    found = set()
    for path, methods in described.items():
        if path.endswith(("/events", "/logout", "/components", "/schema")):
            continue
        for method, operation in methods.items():
            if method == "get":
                for value in STRANGE:
                    query = {each["name"]: value for each in operation.get("parameters", ())}
                    target = _with(path, id=console.id(), number="1", letter=quote(value, safe=""))
                    found.add(console.client.get(target, params=query).status_code)
            elif "{id}" in path or "{name}" in path:
                for value in STRANGE:
                    name = quote(value, safe="") or "x"
                    target = _with(path, id=name, number=name, name=name)
                    found.add(console.client.request(method, target, json={}).status_code)
    for path in ("check", "pipelines", "login", "users", f"pipelines/{console.id()}/apply"):
        for body in BODIES:
            headers = {"Content-Type": "application/json"}
            answer = console.client.post(f"/api/v1/{path}", content=body, headers=headers)
            assert answer.json()["errors"][0]["code"], (path, body[:50])
            found.add(answer.status_code)
    assert max(found) < 500, found


def test_headers_without_end_close_the_connection(console: Console) -> None:
    """The parsers of HTTP differ: one that reads all headers fills the memory before a login."""
    line = b"X-Header: " + b"x" * 20_000 + b"\r\n"
    with listening(console) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            with pytest.raises(ConnectionError):
                for _ in range(1000):
                    connection.sendall(line)
        assert httpx.get(f"{address}/health").status_code == 200


def _with(path: str, **values: str) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


@pytest.mark.usefixtures("static_checks")
def test_concurrent_changes_have_different_numbers(
    console: Console, pipeline_directory: Path
) -> None:
    path, text = f"/api/v1/pipelines/{console.id()}", PIPELINE.format(name="shop")
    calls = [("apply", {"text": f"{text}# {number}"}) for number in range(6)]
    calls += [(word, {}) for word in ("start", "stop", "restart")] * 3

    def call(word: str, body: object) -> tuple[str, int]:
        return word, console.client.post(f"{path}/{word}", json=body).status_code

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda each: call(*each), calls))
    assert {status for _, status in answers} <= {200, 409}, answers
    versions = console.get(f"pipelines/{console.id()}/versions")
    applied = answers.count(("apply", 200))
    assert len(versions) in (applied, applied + 1)
    assert [each["number"] for each in versions] == list(range(len(versions), 0, -1))
    assert (pipeline_directory / "shop" / "shop.yaml").read_text() == versions[0]["text"]


@pytest.mark.usefixtures("static_checks")
def test_one_creation_of_a_name(console: Console) -> None:
    body = {"name": "cafe", "text": PIPELINE.format(name="cafe")}
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: console.client.post("/api/v1/pipelines", json=body), range(4))
    assert sorted(each.status_code for each in found) == [201, 409, 409, 409]


def _link(file: Path) -> None:
    file.symlink_to(_outside(file))


def _linked_directory(file: Path) -> None:
    outside = _outside(file)
    outside.rename(outside.parent / "shop.yaml")
    file.parent.rename(file.parent.parent / ".shop")
    file.parent.symlink_to(outside.parent)


def _outside(file: Path) -> Path:
    outside = file.parents[2] / f"outside-{file.parents[1].name}"
    outside.mkdir()
    (outside / "text").write_text("password: of another directory")
    return outside / "text"


@pytest.mark.parametrize("replace", [Path.mkdir, os.mkfifo, _link, _linked_directory])
def test_a_replaced_file(
    console: Console, pipeline_directory: Path, replace: Callable[[Path], None]
) -> None:
    id, file = console.id(), pipeline_directory / "shop" / "shop.yaml"
    console.server.supervisor.close()
    file.unlink()
    replace(file)
    for method, word in (
        ("get", ""), ("post", "/check"), ("post", "/start"), ("get", "/dead-letters"),
        ("post", "/apply"), ("get", "/runs"),
    ):  # fmt: skip
        body = {"json": {"text": "password: x"} if word == "/apply" else {}}
        path = f"/api/v1/pipelines/{id}{word}"
        answer = console.client.request(method, path, **(body if method == "post" else {}))
        assert answer.status_code < 500, word
        assert "another directory" not in answer.text, word


@pytest.mark.usefixtures("static_checks")
def test_a_text_that_is_not_written_is_no_version(
    console: Console, pipeline_directory: Path
) -> None:
    file = pipeline_directory / ".penstock" / "server" / "pipelines" / "cafe" / "cafe.yaml"
    obstacle = file.with_name(f".cafe.yaml.{os.getpid()}")
    obstacle.mkdir(parents=True)
    body = {"name": "cafe", "text": PIPELINE.format(name="cafe")}
    answer = console.post("pipelines", body, status=409)
    assert answer["errors"][0]["code"] == "file-not-written"
    assert [each["name"] for each in console.get("pipelines")] == ["shop"]
    obstacle.rmdir()
    assert console.post("pipelines", body, status=201)["version"] == 1


@pytest.mark.usefixtures("static_checks")
def test_an_applied_text_is_kept_byte_by_byte(console: Console, pipeline_directory: Path) -> None:
    text = PIPELINE.format(name="cafe").replace("\n", "\r\n") + "# ü"
    created = console.post("pipelines", {"name": "cafe", "text": text}, status=201)
    assert not created["changed"]
    assert console.get(f"pipelines/{created['id']}")["text"] == text


def test_damaged_lines_of_a_log(console: Console) -> None:
    directory = console.server.parts.settings.logs / console.id()
    directory.mkdir(parents=True)
    (directory / "log.jsonl").write_text(
        '{"event": "\\ud800", "x": NaN, "y": 1e999}\n' + '{"a":' * 100_000 + "\n"
        '{"event": 1, "level": ["x"], "timestamp": 5}\n'
    )
    found = console.get(f"pipelines/{console.id()}/logs")
    assert found == [
        {"event": "?", "x": "NaN", "y": "1e999"}, {"event": 1, "level": ["x"], "timestamp": 5},
    ]  # fmt: skip
    assert console.get(f"pipelines/{console.id()}/logs", params={"since": "6000-01-01"}) == []
    (directory / "log.jsonl").unlink()
    (directory / "log.jsonl").mkdir()
    assert console.get(f"pipelines/{console.id()}/logs") == []


def test_the_end_of_the_server_ends_operations(tmp_path: Path) -> None:
    pool, errors = WorkerPool(1, os.environ), []

    def call() -> None:
        try:
            pool.call("describe", tmp_path / "x.sql", text=SLOW_SQL, timeout=60)
        except Transient as error:
            errors.append(error.code)

    thread = threading.Thread(target=call)
    thread.start()
    while not pool._workers:
        time.sleep(0.01)
    pool.close()
    thread.join(30)
    assert errors == ["worker-ended"]
    with pytest.raises(Transient, match="about to end"):
        pool.call("describe", tmp_path / "x.sql", text="")


def test_a_stop_before_the_start_is_not_lost(tmp_path: Path) -> None:
    pipelines = Pipelines(Database.open(tmp_path))
    id = pipelines.add("/x/shop.yaml")
    pipelines.set_wish(id, "running", "ann")
    pipelines.set_wish(id, "stopped", "ann")
    assert not pipelines.begin_start(id, "run", None, "ann")
    assert pipelines.get(id).wish == "stopped"
    pipelines.set_wish(id, "running", "ann")
    assert pipelines.begin_start(id, "run", None, "ann")
    pipelines.give_up(id, "an earlier wish", None)
    assert pipelines.get(id).wish == "running"


def test_each_invalid_request_has_an_expectation_and_a_fix(console: Console) -> None:
    id, text = console.id(), PIPELINE.format(name="x")
    console.post("connections", {"name": "db", "type": "postgres", "options": {}}, status=201)
    cases: dict[str, tuple[str, str, Any, int, str, str]] = {
        "size": ("post", "check", {"name": "x", "text": "a" * 2**21}, 413,
                 "expected at most 1,048,576 bytes", "to a file"),
        "text": ("post", "check", {"name": "x", "text": "a" * 600_000}, 422,
                 '"text": expected at most 524,288 characters', ""),
        "name": ("post", "pipelines", {"name": "a" * 200, "text": text}, 422,
                 '"name": expected at most 64 characters', ""),
        "path": ("post", "pipelines", {"name": "../x", "text": text}, 422,
                 '"name": expected letters, digits', ""),
        "type": ("post", "check", {"name": 1, "text": text}, 422, '"name": expected text', ""),
        "level": ("post", "check", {"name": "x", "text": text, "level": "plans"}, 422,
                  'expected "static", "plan", "connect" or "sample"', ""),
        "field": ("post", "check", {"name": "x", "text": text, "levle": "plan"}, 422,
                  'no field "levle"', 'did you mean "level"?'),
        "list": ("post", "check", [], 422, "the body is no JSON object", "Send a JSON object"),
        "missing": ("post", "check", {"name": "x"}, 422, '"text" is missing', 'Add "text"'),
        "query": ("get", f"pipelines/{id}/logs?levle=error", None, 422,
                  'no parameter "levle"', 'did you mean "level"?'),
        "since": ("get", f"pipelines/{id}/logs?since=tomorrow", None, 422,
                  '"since": expected a time', ""),
        "limit": ("get", "audit?limit=0", None, 422, '"limit": expected at least 1', ""),
        "unknown": ("get", "pipelines/none", None, 404, "no such pipeline", "GET /api/v1"),
        "address": ("get", "none", None, 404, "no such path", "openapi.json"),
        "method": ("put", "pipelines", {}, 405, "no such method", "openapi.json"),
        "option": ("post", "connections",
                   {"name": "x", "type": "postgres", "options": {"urll": ""}}, 400,
                   'no option "urll"', 'did you mean "url"?'),
        "change": ("put", "connections/db", {"options": {"urll": ""}}, 400, 'no option "urll"', ""),
    }  # fmt: skip
    for name, (method, path, body, status, message, hint) in cases.items():
        answer = console.client.request(method, f"/api/v1/{path}", json=body)
        assert answer.status_code == status, (name, answer.text[:300])
        assert "default-src 'self'" in answer.headers["content-security-policy"], name
        (error,) = answer.json()["errors"]
        assert message in error["message"], (name, error)
        assert hint in (error.get("hint") or ""), (name, error)
    answer = console.client.post(
        "/api/v1/check", content=b'{"name": ', headers={"Content-Type": "application/json"}
    )
    assert "no valid JSON at character 9" in answer.json()["errors"][0]["message"]
    secret = console.post("login", {"name": "ann", "password": {"a": "hunter2"}}, status=422)
    assert "hunter2" not in str(secret)

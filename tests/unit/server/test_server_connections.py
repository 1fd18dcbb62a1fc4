"""Connections of the server: secrets, permissions, tests with guarded addresses, discovery."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from fastapi.testclient import TestClient

from penstock.core.errors import Permanent, UserError
from penstock.server.connections.guard import Guard, hosts_of
from penstock.server.connections.secret_options import separate
from penstock.server.settings import Settings
from penstock.server.store.database import FILE
from penstock.server.store.encryption import FILE as KEYS
from penstock.server.store.encryption import Encryption
from server_console import Console, OpenConsole, wait_for

PASSWORD = "correct horse battery"
SECRET = "hunter2222"
SHOP: dict[str, Any] = {
    "url": "postgresql://db.invalid/shop",
    "auth": {"username": "ann", "password": SECRET},
}
USING = """
name: shop
sources:
  orders: {{connection: {name}, table: orders}}
sinks:
  out: {{type: files, from: orders, path: out, format: json}}
"""

pytestmark = pytest.mark.slow


@contextmanager
def user(console: Console, name: str, rights: list[str]) -> Iterator[TestClient]:
    """A client of another user."""
    body = {"name": name, "rights": rights, "password": PASSWORD}
    console.post("users", body, status=201)
    client = TestClient(console.client.app, base_url="http://localhost/api/v1/")
    client.post("login", json={"name": name, "password": PASSWORD})
    yield client


def code(answer: Any) -> str:
    found: str = answer.json()["errors"][0]["code"]
    return found


def create(console: Console, name: str = "shop-db", **body: Any) -> Any:
    given = {"name": name, "type": "postgres", "options": SHOP, **body}
    return console.post("connections", given, status=201)


def test_secrets_are_written_only(console: Console, server_settings: Settings) -> None:
    created = create(console)
    shown = {**SHOP, "auth": {"username": "ann", "password": {"set": True}}}
    assert created["options"] == shown
    assert console.get("connections") == [created]
    url = "/api/v1/connections/shop-db"
    # what the form shows can be sent back, and neither asterisks nor marks become the password
    assert console.client.put(url, json={"options": shown}).json()["options"] == shown
    without = {**SHOP, "auth": {"username": "ann"}}
    assert console.client.put(url, json={"options": without}).json()["options"] == shown
    elsewhere = {**shown, "url": "postgresql://attacker.invalid/shop"}
    answer = console.client.put(url, json={"options": elsewhere})
    assert (answer.status_code, code(answer)) == (400, "secrets-required")
    assert console.get("connections")[0]["options"] == shown
    elsewhere["auth"] = {"username": "ann", "password": "another one"}
    assert console.client.put(url, json={"options": elsewhere}).status_code == 200
    removed = {**elsewhere, "auth": {"username": "ann", "password": None}}
    assert console.client.put(url, json={"options": removed}).json()["options"]["auth"] == {
        "username": "ann"
    }
    with sqlite3.connect(server_settings.data / FILE) as store:
        dump = "".join(store.iterdump())
    assert SECRET not in dump + str(console.get("audit"))
    assert (server_settings.data / KEYS).stat().st_mode & 0o077 == 0
    assert code(console.client.post("/api/v1/connections", json={
        "name": "shop-db", "type": "postgres", "options": {}
    })) == "existing-connection"  # fmt: skip
    wrong = console.client.post(
        "/api/v1/connections", json={"name": "x", "type": "postgre", "options": {}}
    )
    assert wrong.json()["errors"][0]["hint"] == 'did you mean "postgres"?'
    assert console.client.delete(url).status_code == 204
    assert console.client.get(url).status_code == 404


@pytest.mark.parametrize(
    ("type_", "options", "secrets"),
    [
        ("postgres", SHOP, {"auth": {"password": SECRET}}),
        ("kafka", {"properties": {"sasl.password": "x", "client.id": "y"}},
         {"properties": {"sasl.password": "x"}}),
        ("mongodb", {"url": "mongodb://ann:x@h/db"}, {"url": "mongodb://ann:x@h/db"}),
        ("http", {"headers": {"Authorization": "Bearer x", "Accept": "a"}},
         {"headers": {"Authorization": "Bearer x"}}),
    ],
)  # fmt: skip
def test_secrets_are_found(type_: str, options: dict[str, Any], secrets: dict[str, Any]) -> None:
    plain, found = separate(type_, options)
    assert found == secrets
    assert SECRET not in str(plain)


def test_pipelines_use_connections_by_name(console: Console, pipeline_directory: Path) -> None:
    id, file = console.id(), pipeline_directory / "shop" / "shop.yaml"
    text = USING.format(name="shop-db")
    found = console.post(f"pipelines/{id}/check", {"text": text})
    assert found["errors"][0]["code"] == "unknown-connection"
    create(console)
    create(console, "other-db")
    assert console.post(f"pipelines/{id}/check", {"text": text})["ok"]
    near = console.post(f"pipelines/{id}/check", {"text": USING.format(name="shop-dp")})
    assert near["errors"][0]["hint"] == 'did you mean "shop-db"?'
    file.write_text(text)
    wait_for(
        lambda: console.get(f"pipelines/{id}")["nodes"][0]["type"] == "postgres",
        lambda: "the file is not read",
    )
    console.post(f"pipelines/{id}/start")
    console.await_health("running")
    given = json.loads((file.parent / "connections").read_text())["profiles"]
    assert given.keys() == {"shop-db"}, "a run has what its file names, and nothing else"
    assert given["shop-db"]["options"]["auth"]["password"] == SECRET
    assert SECRET not in json.dumps(console.get(f"pipelines/{id}"))


def test_permissions(console: Console, pipeline_directory: Path) -> None:
    id = console.id()
    text = USING.format(name="shop-db")
    create(console, permissions={"users": ["bob"], "pipelines": [id]})
    create(console, "admins", permissions={"right": "admin"})
    with user(console, "ann", ["view", "edit"]) as ann:
        for path in ("connections/shop-db", "connections/admins"):
            assert (ann.get(path).status_code, code(ann.get(path))) == (404, "no-connection")
            assert ann.put(path, json={"options": {}}).status_code == 404
            assert ann.post(f"{path}/test", json={}).status_code == 404
        assert ann.get("connections").json() == []
        found = ann.post(f"pipelines/{id}/check", json={"text": text}).json()
        assert found["errors"][0]["code"] == "forbidden-connection"
        own = {"name": "x", "type": "postgres", "options": {}, "permissions": {}}
        assert code(ann.post("connections", json=own)) == "forbidden"
    with user(console, "bob", ["view", "edit"]) as bob:
        assert [each["name"] for each in bob.get("connections").json()] == ["shop-db"]
        assert bob.post(f"pipelines/{id}/check", json={"text": text}).json()["ok"]
        draft = {"name": "new", "text": text}
        found = bob.post("check", json=draft).json()
        assert found["errors"][0]["code"] == "forbidden-connection", "it is for another pipeline"
    with user(console, "eve", ["view", "data", "operate"]) as eve:
        assert eve.get("connections").status_code == 403


class Listener(BaseHTTPRequestHandler):
    """A server of HTTP, which leads `/away` to the address of metadata services."""

    requests: list[str] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        away = self.path.startswith("/away")
        self.send_response(302 if away else 200)
        if away:
            self.send_header("Location", "http://169.254.169.254/latest")
        body = b'{"id": 1, "secret of the inside": 2}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def listener() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    Listener.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_no_test_reaches_the_inside(console: Console, listener: str) -> None:
    def body(url: str) -> dict[str, Any]:
        options = {"schema": "id INT", "interval": "1s"}
        return {"type": "http_poll", "connection": {"url": url}, "options": options}

    assert console.post("connections/test", body(listener)) == {"tables": None}
    assert Listener.requests, "the right admin permits the loopback"
    Listener.requests.clear()
    with user(console, "ann", ["view", "edit"]) as ann:
        port = listener.rpartition(":")[2]
        for url in (
            listener, f"http://localhost:{port}", f"http://0:{port}", f"http://2130706433:{port}",
            f"http://[::ffff:127.0.0.1]:{port}", "http://169.254.169.254/latest/meta-data/",
        ):  # fmt: skip
            answer = ann.post("connections/test", json=body(url))
            assert code(answer) == "forbidden-address", url
        assert Listener.requests == []
        database = {"type": "postgres", "connection": {**SHOP, "url": "postgresql://127.0.0.1/x"}}
        assert code(ann.post("connections/test", json=database)) == "forbidden-address"
        outside = {"type": "postgres", "connection": SHOP}  # db.invalid has no address
        assert code(ann.post("connections/test", json=outside)) != "forbidden-address"


def test_permitted_networks_and_redirections(listener: str) -> None:
    import urllib.request

    guard = Guard(["127.0.0.0/8"])
    with guard.active({"url": listener}), urllib.request.urlopen(f"{listener}/x") as answer:
        assert answer.status == 200
    with pytest.raises(Permanent, match=r"169\.254\.169\.254"), guard.active({"url": listener}):
        urllib.request.urlopen(f"{listener}/away", timeout=5)


def test_a_name_has_the_addresses_that_were_checked(
    listener: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS that answers with another address the second time changes nothing."""
    import socket
    import urllib.request

    from penstock.server.connections import guard as module

    answers = iter(["127.0.0.1", "169.254.169.254", "169.254.169.254"])
    resolve = module._resolve

    def rebinding(host: str, *rest: Any, **named: Any) -> Any:
        return resolve(next(answers) if host == "shop.test" else host, *rest, **named)

    monkeypatch.setattr(module, "_resolve", rebinding)
    port = listener.rpartition(":")[2]
    with (
        Guard(["127.0.0.0/8"]).active({"url": f"http://shop.test:{port}"}),
        urllib.request.urlopen(f"http://shop.test:{port}/x", timeout=5) as answer,
    ):
        assert answer.status == 200
        assert socket.getaddrinfo("SHOP.test", 1)[0][4][0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("address", "permitted"),
    [
        ("127.0.0.1", False), ("127.9.9.9", False), ("::1", False), ("0.0.0.0", False),
        ("::", False), ("169.254.169.254", False), ("fe80::1%lo", False), ("224.0.0.1", False),
        ("fd00:ec2::254", False), ("100.100.100.200", False), ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("192.0.2.7", True),
        ("10.255.0.1", True), ("2001:db8::1", True),
    ],
)  # fmt: skip
def test_addresses(address: str, permitted: bool) -> None:
    assert Guard().permits(address) is permitted


def test_hosts_of_options() -> None:
    options = {
        "brokers": "a:9092,b:9092", "url": "amqp://ann:x@c:1/v", "auth": {"username": "d"},
        "endpoint": "e", "table": "f.g", "nested": [{"jdbc": "jdbc:postgresql://h/x"}],
        "at": "10.0.0.1", "socket": "unix:///var/run/x",
    }  # fmt: skip
    assert list(hosts_of(options)) == ["a", "b", "c", "e", "h", "10.0.0.1", "/"]


def test_stored_secrets_are_for_their_address(console: Console) -> None:
    create(console)
    for option in ("url", "auth", "connection", "type"):
        body = {"options": {option: "postgresql://attacker.invalid/x"}}
        answer = console.post("connections/shop-db/test", body, status=400)
        assert answer["errors"][0]["code"] == "fixed-option", option


def test_tables_are_discovered(console: Console, pipeline_directory: Path) -> None:
    with closing(sqlite3.connect(pipeline_directory / "shop.db")) as database:
        for number in range(5):
            database.execute(f"CREATE TABLE orders_{number} (id INTEGER PRIMARY KEY, sum REAL)")
        database.execute("CREATE TABLE customers (id INTEGER)")
    body = {"name": "files", "type": "sqlite", "options": {"path": "shop.db"}}
    console.post("connections", body, status=201)
    path = "connections/files/tables"
    first = console.get(path, params={"text": "ORDERS", "limit": 2})
    assert first == {"tables": ["orders_0", "orders_1"], "more": True}
    rest = console.get(path, params={"text": "orders", "after": "orders_1"})
    assert rest == {"tables": ["orders_2", "orders_3", "orders_4"], "more": False}
    found = console.post(path, {"tables": ["orders_1"]})
    (table,) = found["tables"]
    assert (table["primary_key"], [each["name"] for each in table["columns"]]) == (
        ["id"], ["id", "sum"],
    )  # fmt: skip
    assert "connection: files" in found["text"]
    text = f"name: shop\n{found['text']}sinks:\n  out: {{type: print, from: orders_1}}\n"
    assert console.post(f"pipelines/{console.id()}/check", {"text": text})["errors"] == []
    assert console.post("connections/files/test")["tables"] == 6
    topics = console.client.get("/api/v1/connections/files/topics")
    assert topics.json()["errors"][0]["code"] == "no-topics"
    unknown = console.post(path, {"tables": ["order_1"]}, status=400)
    assert unknown["errors"][0]["hint"] == 'did you mean "orders_1"?'


def test_keys_are_rotated(
    open_console: OpenConsole, server_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = open_console()
    create(console)
    file = server_settings.data / KEYS
    before = file.read_text()
    assert console.post("connections/keys/rotate") == {"secrets": 1}
    assert before.strip() not in file.read_text()
    assert console.get("connections/shop-db")["options"]["auth"]["password"] == {"set": True}
    file.write_text(before)
    assert open_console().client.get("/api/v1/connections").json()["errors"][0]["code"] == (
        "wrong-secret-key"
    )


def test_a_killed_rotation_loses_nothing(tmp_path: Path) -> None:
    first = Encryption.load(tmp_path, {})
    text = first.encrypt({"a": 1})
    first.begin_rotation()  # and the process ends here
    second = Encryption.load(tmp_path, {})
    assert second.decrypt(text) == {"a": 1}
    assert second.decrypt(second.encrypt("x")) == "x"


def test_sources_of_keys(tmp_path: Path) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    text = Encryption([old]).encrypt(1)
    by_variable = Encryption.load(tmp_path, {"PENSTOCK_KEYS": f"{new},{old}"})
    by_command = Encryption.load(tmp_path, {}, f"printf '%s\\n%s' {new} {old}")
    assert by_variable.decrypt(text) == by_command.decrypt(text) == 1
    assert not (tmp_path / KEYS).exists()
    for environment, command, found in (
        ({"PENSTOCK_KEYS": "short"}, None, "invalid-keys"),
        ({}, "false", "invalid-keys"),
        ({}, "/no/such/program", "invalid-keys"),
    ):
        assert _code(tmp_path, environment, command) == found
    Encryption.load(tmp_path, {})
    (tmp_path / KEYS).chmod(0o644)
    assert _code(tmp_path, {}, None) == "open-keys"


def _code(data: Path, environment: dict[str, str], command: str | None) -> str:
    with pytest.raises(UserError) as raised:
        Encryption.load(data, environment, command)
    return raised.value.code

"""No route without a login, no request of another site, and no secret in an answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient

from penstock.core.errors import StateError, UserError
from penstock.core.log import Silent
from penstock.core.path_permission import setting_of
from penstock.server.api import events
from penstock.server.api.application import OPEN_PATHS, PREFIX
from penstock.server.api.security import COOKIE, MAX_BODY, requires, unprotected_routes
from penstock.server.server import ADMIN, TOKEN_FILE, child_environment, open_server
from penstock.server.settings import Settings
from penstock.server.store import accounts as store_accounts
from penstock.server.store.accounts import Accounts
from penstock.server.store.database import FILE, Database
from penstock.server.store.tables import STORE
from server_console import Console, OpenConsole
from web_console import listening

PASSWORD = "correct horse battery"

pytestmark = pytest.mark.slow


@pytest.fixture
def stranger(console: Console) -> TestClient:
    return TestClient(
        console.client.app, base_url="http://localhost", raise_server_exceptions=False
    )


def test_every_route_requires_a_right(console: Console, stranger: TestClient) -> None:
    described = console.get("openapi.json")
    assert described["openapi"].startswith("3.1")
    protected = [
        (method.upper(), path)
        for path, methods in described["paths"].items()
        for method in methods
        if path.removeprefix(PREFIX) not in OPEN_PATHS
    ]
    assert len(protected) > 25
    for method, path in [*protected, ("GET", PREFIX + "/openapi.json")]:
        filled = path.format(id=console.id(), number=1, letter="a", name="a", share="a")
        answer = stranger.request(method, filled, json={})
        assert answer.status_code == 401, f"{method} {path}"


def test_a_route_without_a_right_is_found() -> None:
    router = APIRouter()
    router.add_api_route("/open", lambda: None)
    router.add_api_route("/known", lambda: None)
    router.add_api_route("/protected", lambda user: None, dependencies=[requires("view")])
    assert unprotected_routes([router], ["/known"]) == ["/open"]


def test_rights(console: Console, stranger: TestClient) -> None:
    console.post("users", {"name": "ann", "rights": ["view"], "password": PASSWORD}, status=201)
    login = {"name": "ann", "password": PASSWORD}
    assert stranger.post("/api/v1/login", json=login).json()["rights"] == ["view"]
    id = console.id()
    assert stranger.get(f"/api/v1/pipelines/{id}").status_code == 200
    for method, path in (
        ("GET", f"pipelines/{id}/dead-letters"), ("GET", f"pipelines/{id}/logs"),
        ("POST", f"pipelines/{id}/start"), ("POST", f"pipelines/{id}/check"), ("GET", "users"),
        ("GET", "audit"),
    ):  # fmt: skip
        answer = stranger.request(method, f"/api/v1/{path}", json={})
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (403, "forbidden"), path
    own = stranger.post("/api/v1/me/tokens", json={"name": "t", "rights": ["admin"]}).json()
    stranger.cookies.clear()
    bearer = {"Authorization": f"Bearer {own['token']}"}
    assert stranger.get("/api/v1/users", headers=bearer).status_code == 403


def test_a_session_is_a_strict_cookie_and_ends(console: Console, stranger: TestClient) -> None:
    console.post("users", {"name": "ann", "rights": ["view"], "password": PASSWORD}, status=201)
    login = {"name": "ann", "password": PASSWORD}
    answer = stranger.post("/api/v1/login", json=login)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}_7077=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    session = cookie.partition(";")[0].partition("=")[2]
    assert stranger.get("/api/v1/me").json()["name"] == "ann"
    assert stranger.post("/api/v1/logout").status_code == 204
    stranger.cookies.set(f"{COOKIE}_7077", session)
    assert stranger.get("/api/v1/me").status_code == 401
    stranger.post("/api/v1/login", json=login)
    console.client.patch("/api/v1/users/ann", json={"rights": ["view", "data"]})
    assert stranger.get("/api/v1/me").status_code == 401, "a changed user logs in again"


def test_wrong_passwords_are_limited(stranger: TestClient) -> None:
    answers = [
        stranger.post("/api/v1/login", json={"name": name, "password": "wrong"}).status_code
        for name in ("admin", "nobody") * 6
    ]
    assert answers == [401] * 10 + [429] * 2


def test_the_hash_for_unknown_users_costs_as_much_as_others() -> None:
    assert not store_accounts._HASHER.check_needs_rehash(store_accounts._NO_HASH)


def test_a_code_is_valid_once(server_settings: Settings, open_console: OpenConsole) -> None:
    console = open_console()
    code = console.server.login_code
    client = console.client
    assert client.post("/api/v1/login/code", json={"code": code}).json()["name"] == ADMIN
    again = client.post("/api/v1/login/code", json={"code": code})
    assert (again.status_code, again.json()["errors"][0]["code"]) == (401, "wrong-code")
    assert (server_settings.data / TOKEN_FILE).stat().st_mode & 0o077 == 0
    assert open_console().server.login_code is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:7077"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Origin": "http://localhost:9", "Host": "localhost:7077"}, 200),
    ],
)
def test_requests_of_other_sites(console: Console, headers: dict[str, str], status: int) -> None:
    answer = console.client.post(
        f"/api/v1/pipelines/{console.id()}/check", content="{}",
        headers={"Content-Type": "application/json", **headers},
    )  # fmt: skip
    assert answer.status_code == status
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_large_bodies(console: Console) -> None:
    path = f"/api/v1/pipelines/{console.id()}/check"
    body = b'{"text": "' + b"x" * MAX_BODY + b'"}'
    json = {"Content-Type": "application/json"}
    assert console.client.post(path, content=body, headers=json).status_code == 413
    chunks = (body[start : start + 65536] for start in range(0, len(body), 65536))
    answer = console.client.post(path, content=chunks, headers=json)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (413, "body-too-large")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert console.client.post(path, json={"text": "", "level": "all"}).status_code == 422
    assert console.client.post(path, json={"txt": ""}).status_code == 422


@pytest.mark.parametrize("end", ["user", "right", "token"])
def test_a_stream_ends_with_the_right_of_its_user(
    console: Console, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(events, "AGE_SECONDS", 0.0)
    monkeypatch.setattr(events, "PERIOD", 0.3)
    monkeypatch.setattr(events, "CHECK_SECONDS", 0.1)
    accounts = console.server.parts.accounts
    accounts.add_user("ann", ["view"], None)
    token = accounts.issue("ann", "token", "of a test", ["view"])
    headers = {"Authorization": f"Bearer {token}"}
    with (
        listening(console) as address,
        httpx.stream("GET", f"{address}/api/v1/events", headers=headers, timeout=30) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines) == "event: pipelines"
        if end == "user":
            accounts.remove_user("ann")
        elif end == "right":
            accounts.set_user("ann", [])
        else:
            accounts.revoke(token)
        assert sum(1 for _ in islice(lines, 60)) < 60, "the stream continues"


def test_one_administrator_remains(console: Console) -> None:
    for answer in (
        console.client.delete(f"/api/v1/users/{ADMIN}"),
        console.client.patch(f"/api/v1/users/{ADMIN}", json={"rights": ["view"]}),
    ):
        assert answer.json()["errors"][0]["code"] == "last-admin"
    for body, code in (
        ({"name": ADMIN, "rights": []}, "existing-user"),
        ({"name": "ann", "rights": ["root"]}, "unknown-right"),
        ({"name": "ann", "rights": [], "password": "short"}, "short-password"),
    ):
        assert console.post("users", body, status=400)["errors"][0]["code"] == code


def test_the_audit_has_actions_and_no_secrets(console: Console) -> None:
    console.post("users", {"name": "ann", "rights": [], "password": PASSWORD}, status=201)
    token = console.post("me/tokens", {"name": "ci"}, status=201)["token"]
    console.post(f"pipelines/{console.id()}/stop")
    entries = console.get("audit")
    assert [entry["action"] for entry in entries] == ["stop", "create token", "create user"]
    assert PASSWORD not in str(entries)
    assert token not in str(entries)


def test_the_store_has_no_token_and_no_password(
    console: Console, server_settings: Settings
) -> None:
    console.post("users", {"name": "ann", "rights": [], "password": PASSWORD}, status=201)
    token = console.post("me/tokens", {"name": "ci"}, status=201)["token"]
    with sqlite3.connect(server_settings.data / FILE) as store:
        dump = "".join(store.iterdump())
    assert PASSWORD not in dump
    assert token not in dump
    assert "$argon2id$" in dump
    assert (server_settings.data / FILE).stat().st_mode & 0o077 == 0


def test_secrets_of_a_pipeline_are_concealed(console: Console) -> None:
    url = "postgresql://ann:hunter2222@db/x"
    text = f"sources:\n  s: {{type: postgres, url: '{url}', tabel: t}}\nsinks: {{}}\n"
    found = console.post(f"pipelines/{console.id()}/check", {"text": text})
    assert not found["ok"]
    assert "hunter2222" not in str(found)


def test_one_server_for_a_directory(console: Console, server_settings: Settings) -> None:
    with (
        pytest.raises(StateError, match="another server uses") as raised,
        open_server(server_settings, Silent()),
    ):
        pass
    assert raised.value.code == "already-serving"


def test_a_newer_store_is_an_error(tmp_path: Path) -> None:
    database = Database.open(tmp_path)
    database.execute(STORE.update().values(layout=99))
    with pytest.raises(StateError, match="newer version"):
        Database.open(tmp_path)
    with pytest.raises(StateError) as raised:
        Database.open(tmp_path / "x", "postgresql+nothing://host/x")
    assert raised.value.code == "store-not-opened"


def test_expired_tokens(tmp_path: Path) -> None:
    accounts = Accounts(Database.open(tmp_path))
    accounts.add_user("ann", ["view"], PASSWORD)
    assert accounts.user_of(accounts.issue("ann", "token")) is not None
    expired = accounts.issue("ann", "token", lifetime=timedelta(seconds=-5))
    assert accounts.user_of(expired) is None
    assert accounts.authenticate("ann", PASSWORD) is not None
    assert accounts.authenticate("ann", PASSWORD.upper()) is None


def test_changes_have_an_effect_at_once(tmp_path: Path) -> None:
    """A token is known for a second without a query, unless tokens or users change."""
    accounts = Accounts(Database.open(tmp_path))
    accounts.add_user("root", ["admin"], PASSWORD)
    changes: list[Callable[[str], object]] = [
        accounts.revoke,
        lambda _: accounts.remove_token("ann", accounts.tokens("ann")[0]["id"]),
        lambda _: accounts.set_user("ann", ["view", "data"]),
        lambda _: accounts.remove_user("ann"),
    ]
    accounts.add_user("ann", ["view"], PASSWORD)
    for number, change in enumerate(changes):
        token = accounts.issue("ann", "token", f"laptop-{number}")
        assert accounts.user_of(token) == accounts.known_user_of(token, ("token",))
        assert accounts.known_user_of(token, ("token",)) is not None
        assert accounts.known_user_of(token, ("session",)) is None
        change(token)
        assert accounts.known_user_of(token, ("token",)) is None


def test_known_tokens_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database.open(tmp_path)
    accounts = Accounts(database)
    accounts.add_user("ann", ["view"], PASSWORD)
    token = accounts.issue("ann", "token", lifetime=timedelta(hours=1))
    assert accounts.user_of(token) is not None
    later = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    monkeypatch.setattr(store_accounts, "now", lambda: later)
    assert accounts.known_user_of(token, ("token",)) is None
    monkeypatch.undo()
    monkeypatch.setattr(store_accounts, "TOKEN_SECONDS", -1.0)
    accounts = Accounts(database)
    assert accounts.user_of(token) is not None
    assert accounts.known_user_of(token, ("token",)) is None


def test_runs_inherit_permitted_variables_only(server_settings: Settings) -> None:
    environment = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "hidden", "SHOP": "x"}
    for name in ("PENSTOCK_TOKEN", "PENSTOCK_KEYS", "PENSTOCK_STORE"):
        environment[name] = "of an administrator"
    paths = setting_of(server_settings.permitted_paths, [server_settings.data])
    own = {"PATH": "/bin", "PENSTOCK_FUNCTIONS": str(server_settings.functions)}
    own["PENSTOCK_PERMITTED_PATHS"] = paths
    assert child_environment(server_settings, environment) == own
    permitted = replace(server_settings, environment=("SHOP",))
    assert child_environment(permitted, environment) == {**own, "SHOP": "x"}
    without = replace(server_settings, python=False)
    assert child_environment(without, environment)["PENSTOCK_NO_PYTHON"] == "1"
    with pytest.raises(UserError, match="SHOPS"):
        child_environment(replace(server_settings, environment=("SHOPS",)), environment)

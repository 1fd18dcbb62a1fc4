"""Share links, idempotency keys, versions by ETag, functions, and servers without Python."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from penstock.server.settings import Settings
from penstock.server.store.tables import SHARES
from server_console import PIPELINE, Console, OpenConsole, wait_for

pytestmark = pytest.mark.slow
PASSWORD = "correct horse battery"
FUNCTIONS = """from penstock import udf


@udf
def slug(text: str) -> str:
    return text.replace(" ", "-")
"""
CALLING = """
name: shop
sources:
  orders: {type: generate, fields: {id: {type: sequence}}}
transforms:
  named: {type: sql, sql: SELECT slug(CAST(id AS STRING)) AS slug FROM orders}
sinks:
  out: {type: files, from: named, path: out, format: json}
"""


@pytest.fixture
def stranger(console: Console) -> Iterator[TestClient]:
    with TestClient(console.client.app, base_url="http://localhost/api/v1/") as client:
        yield client


def shared(client: TestClient, token: str) -> Any:
    return client.get("shared", headers={"Penstock-Share": token})


def test_a_link_shows_one_pipeline_and_ends(console: Console, stranger: TestClient) -> None:
    id = console.id()
    created = console.post(f"pipelines/{id}/shares", {"days": 1}, status=201)
    found = shared(stranger, created["token"]).json()
    assert found["pipeline"]["name"] == "shop"
    assert [node["name"] for node in found["pipeline"]["nodes"]] == ["orders", "out"]
    assert "text" not in found["pipeline"]
    assert "path" not in str(found)
    for path in ("pipelines", f"pipelines/{id}", "audit"):
        for headers in (
            {"Penstock-Share": created["token"]}, {"Authorization": f"Bearer {created['token']}"},
        ):  # fmt: skip
            assert stranger.get(path, headers=headers).status_code == 401
    (listed,) = console.get(f"pipelines/{id}/shares")
    assert "token" not in listed
    assert shared(stranger, "").status_code == shared(stranger, "x").status_code == 401
    url = f"/api/v1/pipelines/{id}/shares/{created['id']}"
    assert console.client.delete(url).status_code == 204
    assert console.client.delete(url).status_code == 404
    revoked = shared(stranger, created["token"])
    assert (revoked.status_code, revoked.json()["errors"][0]["code"]) == (401, "invalid-link")
    actions = [entry["action"] for entry in console.get("audit")]
    assert actions == ["revoke link", "open link", "create link"]
    late = console.post(f"pipelines/{id}/shares", {}, status=201)
    past = SHARES.update().values(expires="2000-01-01T00:00:00Z")
    console.server.parts.shares._database.execute(past)
    assert shared(stranger, late["token"]).status_code == 401
    assert console.get(f"pipelines/{id}/shares") == []
    for body in ({"days": 0}, {"days": 91}):
        console.post(f"pipelines/{id}/shares", body, status=422)


def test_a_link_has_the_rights_of_its_author(console: Console, stranger: TestClient) -> None:
    body = {"name": "ann", "rights": ["view"], "password": PASSWORD}
    console.post("users", body, status=201)
    with TestClient(console.client.app, base_url="http://localhost/api/v1/") as ann:
        ann.post("login", json={"name": "ann", "password": PASSWORD})
        path = f"pipelines/{console.id()}/shares"
        assert ann.post(path, json={"letter": "1"}).json()["errors"][0]["code"] == "forbidden"
        own = ann.post(path, json={}).json()
        other = console.post(path, {}, status=201)
        assert ann.delete(f"{path}/{other['id']}").status_code == 403
    assert shared(stranger, own["token"]).status_code == 200
    console.client.patch("/api/v1/users/ann", json={"rights": []})
    assert shared(stranger, own["token"]).status_code == 403
    console.client.delete("/api/v1/users/ann")
    assert shared(stranger, own["token"]).status_code == 401
    unknown = console.post(path, {"letter": "nothing"}, status=404)
    assert unknown["errors"][0]["code"] == "no-dead-letter"


@pytest.mark.usefixtures("static_checks")
def test_a_repeated_request_acts_once(console: Console) -> None:
    post = console.client.post
    key = {"Idempotency-Key": "one"}
    body = {"name": "cafe", "text": PIPELINE.format(name="cafe")}
    first = post("/api/v1/pipelines", json=body, headers=key)
    again = post("/api/v1/pipelines", json=body, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    other = post("/api/v1/pipelines", json={**body, "note": "x"}, headers=key)
    assert other.json()["errors"][0]["code"] == "reused-key"
    path = f"/api/v1/pipelines/{first.json()['id']}/start"
    assert post(path, json={}, headers=key).json()["errors"][0]["code"] == "reused-key"
    broken = {**body, "name": "bar", "text": "sources: 1"}
    failing = {"Idempotency-Key": "two"}
    assert post("/api/v1/pipelines", json=broken, headers=failing).status_code == 422
    mended = {**broken, "text": PIPELINE.format(name="bar")}
    assert post("/api/v1/pipelines", json=mended, headers=failing).status_code == 201
    assert post(path, json={}, headers={"Idempotency-Key": "a b"}).status_code == 400
    three = {"Idempotency-Key": "three"}
    pub = {"name": "pub", "text": PIPELINE.format(name="pub")}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(
            lambda _: post("/api/v1/pipelines", json=pub, headers=three).status_code, range(4)
        ))  # fmt: skip
    assert set(answers) <= {201, 409}
    assert [each["name"] for each in console.get("pipelines")].count("pub") == 1
    console.post("users", {"name": "ann", "rights": ["view"], "password": PASSWORD}, status=201)
    with TestClient(console.client.app, base_url="http://localhost/api/v1/") as ann:
        ann.post("login", json={"name": "ann", "password": PASSWORD})
        assert ann.post("pipelines", json=body, headers=key).status_code == 403


@pytest.mark.usefixtures("static_checks")
def test_a_version_by_its_etag(console: Console) -> None:
    path = f"/api/v1/pipelines/{console.id()}"
    assert console.client.get(path).headers["ETag"] == '"0"'
    text = {"text": PIPELINE.format(name="shop") + "# 1"}

    def apply(tag: str) -> int:
        headers = {"If-Match": tag}
        return console.client.post(f"{path}/apply", json=text, headers=headers).status_code

    assert [apply('"7"'), apply('"x"'), apply('"0"')] == [409, 400, 200]
    number = console.client.get(path).headers["ETag"]
    assert [apply('"0"'), apply(number)] == [409, 200]


def test_functions_are_registered(
    open_console: OpenConsole, server_settings: Settings, pipeline_directory: Path
) -> None:
    console = open_console()
    wrong = FUNCTIONS.replace("-> str", "-> strr")
    found = console.post("functions/check", {"name": "text", "text": wrong})
    (error,) = found["errors"]
    assert wrong.splitlines()[error["line"] - 1][error["column"] - 1 :].startswith("strr")
    rejected = console.post("functions", {"name": "text", "text": wrong}, status=422)
    assert rejected["errors"] == found["errors"]
    first = console.post("functions", {"name": "text", "text": FUNCTIONS}, status=201)
    assert (first["version"], first["signatures"]) == (1, ["slug(text STRING) RETURNS STRING"])
    again = {"name": "text", "text": FUNCTIONS + "# 2\n", "note": "second"}
    assert console.post("functions", again, status=201)["version"] == 2
    assert [each["note"] for each in console.get("functions/text/versions")] == ["second", ""]
    other = console.post("functions/check", {"name": "more", "text": FUNCTIONS})
    assert other["errors"][0]["code"] == "duplicate-name"
    for name in ("../x", "X", "a.b", "a-b", ""):
        console.post("functions", {"name": name, "text": FUNCTIONS}, status=422)
    file = server_settings.functions / "text.py"
    assert file.read_text() == again["text"]
    file.unlink()
    console = open_console()
    assert file.read_text() == again["text"], "the store has the functions"
    explained = console.post(f"pipelines/{console.id()}/check", {"text": CALLING})
    assert explained["errors"] == []
    assert console.client.delete("/api/v1/functions/text").status_code == 204
    assert not file.exists()
    assert console.client.get("/api/v1/functions/text/versions").status_code == 404


HARMFUL = "open('harm', 'w')"
PYTHON: dict[str, str] = {
    "transform": PIPELINE.format(name="shop").replace("from: orders", "from: t")
    + f"""
transforms:
  t: {{type: python, from: orders, code: "def transform(batch):\\n  {HARMFUL}\\n  return batch"}}
""",
    "function": PIPELINE.format(name="shop")
    + f"""
functions:
  f: {{args: [x], returns: STRING, code: "return {HARMFUL}"}}
""",
    "function file": PIPELINE.format(name="shop") + "function_files: harm.py\n",
    "plugin": PIPELINE.format(name="shop") + "plugins: harm.py\n",
    "preprocessor": "# preprocess: harm:change\n" + PIPELINE.format(name="shop").lstrip(),
    "method of Java": PIPELINE.format(name="shop").replace("from: orders", "from: t")
    + """
transforms:
  t: {type: sql, sql: "SELECT `Reflect`('java.lang.System', 'exit', 1) AS x FROM orders"}
""",
    "function with a requirement": PIPELINE.format(name="shop")
    + f"""
functions:
  f: {{args: [x], returns: STRING, code: "return {HARMFUL}", dependencies: [harm]}}
""",
    "function of SQL": PIPELINE.format(name="shop")
    + """
functions:
  f: {args: {x: STRING}, returns: STRING, sql: "java_method('java.lang.System', x)"}
""",
    "packages": PIPELINE.format(name="shop") + "runtime: {packages: [org.harm:harm:1]}\n",
    "packages of a driver": PIPELINE.format(name="shop").replace(
        "type: files, from: orders, path: out, format: json",
        "type: jdbc, from: orders, url: 'jdbc:x://h/d', table: t, packages: [org.harm:harm:1]",
    ),
    "settings of Spark": PIPELINE.format(name="shop")
    + "runtime: {spark: {spark.driver.extraJavaOptions: '-javaagent:harm.jar'}}\n",
    "step": PIPELINE.format(name="shop").replace("from: orders", "from: t")
    + """
transforms:
  t: {type: steps, from: orders, steps: [{type: python, module: harm, function: f}]}
""",
    "script": f"""CREATE FUNCTION f(x STRING) RETURNS STRING LANGUAGE PYTHON AS $$
return {HARMFUL}
$$;
SELECT f('a');
""",
}


def test_no_python(
    server_settings: Settings, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way to code is rejected by check, create and start, and no code has run."""
    from penstock.core.log import Silent
    from penstock.server.api.application import make_application
    from penstock.server.server import TOKEN_FILE, open_server

    settings = replace(server_settings, python=False)
    directory = pipeline_directory / "shop"
    (directory / "harm.py").write_text(f"{HARMFUL}\ndef change(text): return text\n")
    with open_server(settings, Silent()) as server:
        client = TestClient(make_application(server.parts), base_url="http://localhost")
        token = (settings.data / TOKEN_FILE).read_text()
        client.headers["Authorization"] = f"Bearer {token}"
        console = Console(server, client)
        wait_for(lambda: console.get("pipelines"), lambda: "the server is not ready")
        id = console.id()
        for name, text in PYTHON.items():
            path = "pipelines/{id}/check" if name != "script" else "check"
            body = {"text": text} if name != "script" else {"name": "new", "text": text}
            found = console.post(path.format(id=id), body)
            codes = {error["code"] for error in found["errors"]}
            assert "python-rejected" in codes, (name, found["errors"])
            console.post("pipelines", {"name": "new", "text": text}, status=422)
        (directory / "shop.yaml").write_text(PYTHON["plugin"])
        wait_for(lambda: console.get(f"pipelines/{id}")["errors"], lambda: "the file is not read")
        console.post(f"pipelines/{id}/start", status=422)
        for path in ("functions", "functions/check"):
            rejected = console.post(path, {"name": "text", "text": FUNCTIONS}, status=400)
            assert rejected["errors"][0]["code"] == "python-rejected"
    assert list(pipeline_directory.rglob("harm")) == []

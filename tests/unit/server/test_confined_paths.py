"""Paths of pipelines stay within the directories that a server permits, in every option."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from penstock import app
from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, SpecError
from penstock.core.log import Silent
from penstock.core.path_permission import CODE, VARIABLE, rejected_within, setting_of
from penstock.server.api.application import make_application
from penstock.server.server import TOKEN_FILE, child_environment, open_server
from penstock.server.settings import Settings
from server_console import PIPELINE, Console, wait_for

pytestmark = pytest.mark.slow
SOURCES = {
    "absolute": "{type: files, path: /etc/passwd, format: text}",
    "parent": "{type: files, path: ../../secret/x, format: text}",
    "hidden parent": "{type: files, path: 'a/*/../../../../secret', format: text}",
    "home": "{type: files, path: ~/x, format: text}",
    "URL": "{type: files, path: 'file:///etc/passwd', format: text}",
    "URL with a host": "{type: files, path: 'FILE://localhost/etc/passwd', format: text}",
    "escaped URL": "{type: files, path: 'file:%2Fetc%2Fpasswd', format: text}",
    "link": "{type: files, path: link/x, format: text}",
    "pattern below a link": "{type: files, path: 'link/*', format: text}",
    "data of the server": "{type: files, path: .penstock/server/token, format: text}",
    "variable": "{type: files, path: '${OUTSIDE}/x', format: text}",
    "schema file": "{type: files, path: x, format: {type: avro, schema_file: /etc/x.avsc}}",
    "protobuf": "{type: files, path: x, format: {type: protobuf, message: M, schema_file: a.proto,"
    " include: [/etc]}}",
    "certificate": "{type: kafka, brokers: 'k:9', topic: t, format: json, tls: {ca: /etc/ca.pem}}",
    "property": "{type: kafka, brokers: 'k:9', topic: t, format: json,"
    " properties: {ssl.ca.location: /etc/ca.pem}}",
    "credentials": "{type: nats, url: 'nats://n:4222', subject: s, format: json,"
    " auth: {creds: /etc/c}}",
    "sqlite": "{type: sqlite, path: /var/lib/x.db, table: t}",
    "path like a URL": "{type: sqlite, path: 'a://../../../x.db', table: t}",
    "path with a URL": "{type: sqlite, path: '/var/a://x.db', table: t}",
    "NUL": '{type: sqlite, path: "../../x.db\\0", table: t}',
    "duckdb": "{type: duckdb, path: ../../x.duckdb, table: t}",
    "delta": "{type: delta, path: 'file:///var/x'}",
    "iceberg": "{type: iceberg, table: a.b, catalog: {type: sql, path: x.db, warehouse: /var/x}}",
    "jar": "{type: jdbc, url: 'jdbc:x://h/d', jars: [/opt/x.jar], table: t}",
    "JDBC": "{type: jdbc, url: 'jdbc:h2:file:/var/x;MODE=MySQL', table: t}",
    "JDBC above": "{type: jdbc, url: 'jdbc:h2:./../../../x', table: t}",
    "JDBC without a scheme": "{type: jdbc, url: 'jdbc:derby:/var/x', table: t}",
    "spark": "{type: spark, provider: text, path: /etc/passwd}",
    "option of spark": "{type: spark, provider: text, options: {path: 'file:/etc/passwd'}}",
    "socket": "{type: zeromq, listen: 'ipc:///run/x', format: json}",
    "secret": "{type: generate, fields: {id: sequence, a: {type: choice, of: ['${file:/etc/x}']}}}",
}
HEAD = "name: x\nsources:\n  s: {type: generate, fields: {id: sequence}}\nsinks:\n"
HEAD += "  o: {type: blackhole, from: s}\n"
TEXTS = {
    "sink": HEAD.replace("{type: blackhole", "{type: files, path: /var/out, format: json"),
    "sink of a database": HEAD.replace("{type: blackhole", "{type: sqlite, path: /v.db, table: t"),
    "dead letters": HEAD + "dead_letter: {type: files, path: /var/letters, format: json}\n",
    "state": HEAD + "runtime: {state: /var/state}\n",
    "setting of spark": HEAD + "runtime: {spark: {spark.jars: 's3://b/x.jar,/opt/x.jar'}}\n",
    "include": HEAD + "include: /etc/x.yaml\n",
    "include of a pattern": HEAD + "include: ../../*.yaml\n",
    "include of a link": HEAD + "include: 'l*/outside.yaml'\n",
    "functions": HEAD + "function_files: ../../f.py\n",
    "plugins": HEAD + "plugins: [/etc/p.py]\n",
    "connection": HEAD.replace("type: generate, fields: {id: sequence}", "connection: c, table: t")
    + "connections: {c: {type: sqlite, path: /var/x.db}}\n",
    "python": HEAD.replace("from: s", "from: t")
    + "transforms: {t: {type: python, from: s, function: '/etc/mod:f'}}\n",
    "steps": HEAD.replace("from: s", "from: t")
    + "transforms:\n  t: {type: steps, from: s, steps: [{type: wasm, module: /x, function: f}]}\n",
    "json schema": HEAD.replace("from: s", "from: t")
    + "transforms: {t: {type: json_schema, from: s, column: id, schema_file: /etc/x}}\n",
    "SQL": "CREATE TABLE s (line STRING) WITH (connector = 'files', path = '/etc/passwd',"
    " format = 'text');\nSELECT * FROM s;\n",
    "SQL of Arroyo": "CREATE TABLE s (value TEXT) WITH (connector = 'filesystem', type = 'source',"
    " path = 'file:///etc/', format = 'raw_string');\nSELECT * FROM s;\n",
} | {
    f"source: {name}": HEAD.replace("{type: generate, fields: {id: sequence}}", options)
    for name, options in SOURCES.items()
}  # fmt: skip
PERMITTED = {
    "below": "{type: files, path: in/*.json, format: text}",
    "up and down": "{type: files, path: ../shop/in, format: text}",
    "another directory": "{type: files, path: ALLOWED/x, format: text}",
    "link within": "{type: files, path: inner/x, format: text}",
    "object store": "{type: files, path: 's3://bucket/etc', format: text}",
    "path of a URL": "{type: http, listen: '0.0.0.0:1', path: /hook, format: json}",
    "property": "{type: kafka, brokers: 'k:9', topic: t, format: json,"
    " properties: {client.id: 'a/b', sasl.password: /x}}",
    "JDBC": "{type: jdbc, url: 'jdbc:x://h/etc', table: t}",
    "JDBC beside the file": "{type: jdbc, url: 'jdbc:h2:./orders', table: t}",
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a pipeline with links, in that of a server, which is a link itself."""
    served, outside, real = tmp_path / "served", tmp_path / "outside", tmp_path / "real"
    real.mkdir()
    served.symlink_to(real)
    for each in (served / "shop", outside, tmp_path / "allowed", served / ".penstock" / "server"):
        each.mkdir(parents=True)
    (served / "shop" / "link").symlink_to(outside)
    (served / "shop" / "inner").symlink_to(served)
    (served / "shop" / "a.proto").write_text('syntax = "proto3"; message M {}')
    (outside / "outside.yaml").write_text("sources: {}")
    (outside / "x").write_text("outside")
    monkeypatch.setenv("OUTSIDE", str(outside))
    data = served / ".penstock" / "server"
    roots = [served, data / "pipelines", tmp_path / "allowed"]
    monkeypatch.setenv(VARIABLE, setting_of(roots, [data]))
    yield served / "shop"


def errors_of(directory: Path, text: str) -> list[dict[str, Any]]:
    file = directory / ("x.sql" if text.startswith("CREATE") else "x.yaml")
    file.write_text(text)
    try:
        _, errors = app.partial_plan(file)
    except PenstockError as error:
        errors = [error]
    return [facts for error in errors for facts in to_dicts(error)]


@pytest.mark.parametrize("name", TEXTS)
def test_every_option_is_confined(directory: Path, name: str) -> None:
    text = TEXTS[name]
    if "token" in text:
        text = text.replace(".penstock", "../.penstock")
    errors = [each for each in errors_of(directory, text) if each["code"] == CODE]
    assert errors, errors_of(directory, text)
    (error,) = errors
    assert "outside the directories that the server permits" in error["message"]
    assert str(directory.parent.resolve()) in error["hint"]
    assert "--allow-path" in error["hint"]
    assert error["line"] >= 1
    assert error["column"] >= 1
    assert Path(error["file"]).parent == directory


@pytest.mark.parametrize("name", PERMITTED)
def test_other_paths_are_permitted(directory: Path, name: str) -> None:
    options = PERMITTED[name].replace("ALLOWED", str(directory.parents[1] / "allowed"))
    text = HEAD.replace("{type: generate, fields: {id: sequence}}", options)
    assert CODE not in {each["code"] for each in errors_of(directory, text)}


def test_settings_of_other_programs(directory: Path) -> None:
    rejected = ("/etc/x", "-Dkey=/etc/x", "a.jar,/opt/x.jar", "/opt/a:/opt/b", "'../../../x'")
    rejected += ("-Dconf=file:/etc/x", "~/x", "a://../../../../../../../../etc/x")
    permitted = ("https://host/etc/x", "s3a://bucket/x", "a/b", "key=a/b", str(directory), "")
    assert [each for each in rejected if not rejected_within(each)] == []
    assert [each for each in permitted if rejected_within(each)] == []


def test_databases_open_their_own_file_only(directory: Path) -> None:
    """Queries in SQL of DuckDB and SQLite cannot name other files, nor load extensions."""
    import duckdb

    from penstock.connectors.duckdb.config import DuckdbSourceConfig
    from penstock.connectors.duckdb.connection import DuckdbConnection
    from penstock.connectors.sqlite.connection import SqliteConnection

    file, other = directory / "own.duckdb", directory.parents[1] / "outside" / "x"
    with duckdb.connect(str(file)) as created:
        created.execute("CREATE TABLE t AS SELECT 7 AS x")
    config = DuckdbSourceConfig(path=str(file), table="t")
    reading = DuckdbConnection(config, read_only=True)
    assert [*reading.fetch("SELECT x FROM t")] == [[(7,)]]
    for query in (
        f"SELECT * FROM read_text('{other}')", f"SELECT * FROM '{other}.csv'",
        f"COPY t TO '{directory / 'copy.csv'}'", f"ATTACH '{other}' AS y", "INSTALL httpfs",
        "LOAD httpfs", "SET enable_external_access = true", "RESET allowed_paths",
    ):  # fmt: skip
        with pytest.raises(PenstockError, match=r"disabled|Cannot (?:change|enable)|read-only"):
            [*reading.fetch(query)]
        reading.rollback()
    writing = DuckdbConnection(config.model_copy(), read_only=False)
    writing.execute("INSERT INTO t VALUES (8)")
    writing.commit()
    assert [*DuckdbConnection(config, read_only=True).fetch("SELECT x FROM t")] == [[(7,), (8,)]]

    path = str(directory / "own.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (x INT)")
    with pytest.raises(PenstockError, match="not authorized"):
        [*SqliteConnection(path, "rwc").fetch(f"ATTACH '{other}' AS y")]
    for connect in (
        lambda: SqliteConnection(str(other), "rwc"),
        lambda: DuckdbConnection(DuckdbSourceConfig.model_construct(path=str(other), timeout=1),
                                 read_only=True).fetch("SELECT 1").__next__(),
    ):  # fmt: skip
        with pytest.raises(PenstockError, match="outside the directories"):
            connect()


def test_files_behind_links_are_not_opened(directory: Path) -> None:
    """A link that a pattern matches, or that replaces a directory after the check."""
    from penstock.connectors.files.local import LocalStorage

    for action in (LocalStorage().open, LocalStorage().create):
        with pytest.raises(SpecError, match="outside the directories"):
            action(str(directory / "link" / "x"))
    assert (directory.parents[1] / "outside" / "x").read_text() == "outside"


def test_relations_of_spark_are_no_files(directory: Path) -> None:
    for relation in ("text.`/etc/passwd`", "`file:///etc/passwd`", "csv.`../../outside/x`"):
        text = HEAD.replace("from: s", "from: t")
        text += f'transforms: {{t: {{type: sql, sql: "SELECT * FROM {relation}"}}}}\n'
        assert {each["code"] for each in errors_of(directory, text)} == {"unknown-node"}


def test_every_way_into_the_server_is_confined(
    server_settings: Settings, pipeline_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Texts are rejected by each route, by workers with a session, and by runs of other texts."""
    allowed = tmp_path_factory.mktemp("allowed")
    real = type(server_settings)(server_settings.directory, server_settings.data)
    settings = replace(server_settings, session_command=real.session_command, paths=(allowed,))
    outside = PIPELINE.format(name="shop").replace("path: out", "path: /var/out")
    within = PIPELINE.format(name="shop").replace("path: out", f"path: {allowed}/out")
    with open_server(settings, Silent()) as server:
        client = TestClient(make_application(server.parts), base_url="http://localhost")
        token = (settings.data / TOKEN_FILE).read_text()
        client.headers["Authorization"] = f"Bearer {token}"
        console = Console(server, client)
        wait_for(lambda: console.get("pipelines"), lambda: "the server is not ready")
        own = f"pipelines/{console.id()}"
        new = {"name": "new", "text": outside}
        for path in (f"{own}/check", "check"):
            (error,) = console.post(path, new if path == "check" else {"text": outside})["errors"]
            line = outside.splitlines()[error["line"] - 1]
            assert line[error["column"] - 1 :].startswith("/var/out")
            assert str(allowed) in error["hint"]
        for path in ("pipelines", f"{own}/apply"):
            rejected = console.post(path, new if path == "pipelines" else {"text": outside}, 422)
            assert [each["code"] for each in rejected["errors"]] == [CODE]
        for path, body in (
            ("preview", {"nodes": ["out"]}), ("test", {}), ("dead-letters/1/try", {}),
        ):  # fmt: skip
            answer = client.post(f"/api/v1/{own}/{path}", json={"text": outside, **body})
            assert (answer.text.count("event: failed"), answer.text.count(CODE)) == (1, 1), path
        assert console.post(f"{own}/check", {"text": within})["errors"] == []
        connection = {"type": "sqlite", "connection": {"path": "/var/lib/x.db"}}
        answer = client.post("/api/v1/connections/test", json={**connection, "kind": "source"})
        assert answer.json()["errors"][0]["code"] == CODE, answer.text
        (pipeline_directory / "shop" / "shop.yaml").write_text(outside)
        wait_for(lambda: console.get(own)["errors"], lambda: "the file is not read")
        assert console.post(f"{own}/start", status=422)["errors"][0]["code"] == CODE
    environment = child_environment(settings, {})
    assert json.loads(environment[VARIABLE])["permitted"] == [
        str(each) for each in (settings.directory, settings.created, allowed)
    ]

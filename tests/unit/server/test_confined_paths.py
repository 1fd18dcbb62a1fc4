"""Paths of pipelines stay within the directories that a server permits, through every door."""

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
from penstock.core.errors import PenstockError
from penstock.core.log import Silent
from penstock.core.path_permission import CODE, VARIABLE, rejected_within, setting_of
from penstock.server.settings import Settings
from server_console import PIPELINE, Console, wait_for

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
    "credentials": "{type: nats, url: 'nats://n:4222', subject: s, format: json, creds: /etc/c}",
    "sqlite": "{type: sqlite, path: /var/lib/x.db, table: t}",
    "duckdb": "{type: duckdb, path: ../../x.duckdb, table: t}",
    "delta": "{type: delta, path: 'file:///var/x'}",
    "iceberg": "{type: iceberg, table: a.b, catalog: {type: sql, path: x.db, warehouse: /var/x}}",
    "jar": "{type: jdbc, url: 'jdbc:x://h/d', jars: [/opt/x.jar], table: t}",
    "JDBC": "{type: jdbc, url: 'jdbc:h2:file:/var/x;MODE=MySQL', table: t}",
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
    "connection": HEAD.replace("generate, fields: {id: sequence}", "sqlite, connection: c, table: t")
    + "connections: {c: {path: /var/x.db}}\n",
    "python": HEAD.replace("from: s", "from: t")
    + "transforms: {t: {type: python, from: s, function: '/etc/mod:f'}}\n",
    "steps": HEAD.replace("from: s", "from: t")
    + "transforms: {t: {type: steps, from: s, steps: [{type: wasm, module: /etc/x, function: f}]}}\n",
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
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a server with links, and of a pipeline in it. Paths are confined."""
    served, outside = tmp_path / "served", tmp_path / "outside"
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
def test_every_door_is_confined(directory: Path, name: str) -> None:
    text = TEXTS[name]
    if "token" in text:
        text = text.replace(".penstock", "../.penstock")
    errors = [each for each in errors_of(directory, text) if each["code"] == CODE]
    assert errors, errors_of(directory, text)
    (error,) = errors
    assert "outside the directories that the server permits" in error["message"]
    assert str(directory.parent) in error["hint"]
    assert "--allow-path" in error["hint"]
    assert error["line"] >= 1
    assert error["column"] >= 1
    assert Path(error["file"]).parent == directory


@pytest.mark.parametrize("name", PERMITTED)
def test_other_paths_are_permitted(directory: Path, name: str) -> None:
    options = PERMITTED[name].replace("ALLOWED", str(directory.parents[1] / "allowed"))
    text = HEAD.replace("{type: generate, fields: {id: sequence}}", options)
    assert CODE not in {each["code"] for each in errors_of(directory, text)}

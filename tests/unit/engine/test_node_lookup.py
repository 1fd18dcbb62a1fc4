"""Lookups by key in a local file, by the driver of a cluster."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.engine.build import Builder
from penstock.engine.driver_files import server as servers
from penstock.engine.driver_files.server import FileServer
from penstock.engine.lookups.node_lookup import key_lookup
from penstock.plan.model import Plan, Query
from penstock.sdk import Read

PIPELINE = """
name: p
sources:
  in: {type: generate, rows: 1, fields: {n: sequence}}
  names:
    {type: sqlite, path: names.db, table: names, primary_key: [d], lookup: true,
     schema: "d BIGINT NOT NULL, name STRING"}
transforms:
  t: {type: sql, sql: "SELECT n, name FROM in JOIN names ON n = d"}
sinks:
  out: {type: print, from: t}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    with closing(sqlite3.connect(tmp_path / "names.db")) as database, database:
        database.execute("CREATE TABLE names (d INTEGER PRIMARY KEY, name TEXT)")
        database.execute("INSERT INTO names VALUES (1, 'one')")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    return app.plan(tmp_path / "p.yaml")


@pytest.fixture
def server(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    server = FileServer(plan.state, "127.0.0.1", "127.0.0.1")
    monkeypatch.setattr(servers, "_servers", [server])
    yield server
    server.close()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_query_and_a_replay_of_dead_letters(plan: Plan, has_checkpoint: bool) -> None:
    """A replay has no checkpoint."""
    session: Any = None
    builder = Builder(plan, session)
    if has_checkpoint:
        builder = replace(builder, checkpoint=plan.state / "checkpoints" / "q")
    lookup = key_lookup(builder, plan.nodes["names"], Query("q", "", (), (), ()))
    assert lookup.served is not None
    rows = lookup.served(pa.RecordBatch.from_pylist([{"d": 1}], lookup.keys), Read())
    assert rows.to_pylist() == [{"d": 1, "name": "one"}]

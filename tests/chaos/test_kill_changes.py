"""Copies of tables by their changes, while the run, its receivers and the databases are killed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from change_workload import PostgresTable
from deaths import run_until_killed
from kill_changes import await_equal, create, kill_server, workloads
from moments import Change
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.runtime.receiving.receivers import Receiver
from servers.clickhouse import ClickHouse
from servers.mariadb import MariaDb
from servers.postgres import PASSWORD, Postgres

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

BETWEEN_SINKS = Change("*/penstock-batch.json", "after", 3)
WITHIN_A_SCHEMA_CHANGE = Change("*/plan.json", "before", 2)


def test_copies_are_equal(
    tmp_path: Path, postgres: Postgres, mariadb: MariaDb, clickhouse: ClickHouse,
    penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The rows of one table are read before its changes, without a snapshot."""
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    receivers: list[Receiver] = []
    start = Receiver._start

    def start_and_remember(receiver: Receiver) -> None:
        receivers.append(receiver)
        start(receiver)

    monkeypatch.setattr(Receiver, "_start", start_and_remember)
    servers = {"postgres": postgres, "mariadb": mariadb, "clickhouse": clickhouse}
    all_copies = create(tmp_path, servers, rows=2000, phased=["mariadb"])
    file = tmp_path / "pipeline.yaml"
    with workloads(all_copies, 3000, parts=3, keys=6000, seed=7) as running:
        for moment in (BETWEEN_SINKS, WITHIN_A_SCHEMA_CHANGE):
            assert run_until_killed(file, moment, penstock_spark)
            for each in running:
                each.allow()
        handle = app.start(file, spark=penstock_spark.newSession())
        for receiver in receivers[-2:]:
            receiver.kill()
        for server in (postgres, mariadb):
            kill_server(server, random.Random(7))
        for each in running:
            each.join()
        await_equal(all_copies)
        handle.stop()
        outcome = handle.wait(60)
        assert outcome is not None and outcome.errors == {}
    for copies in all_copies:
        copies.origin.execute(f"UPDATE {copies.origin.table} SET name = 'between', id = -id - 9999")
    app.run(file, spark=penstock_spark.newSession(), options=RunOptions(until="caught_up"))
    assert not [text for copies in all_copies for text in copies.differences()]
    origin = all_copies[0].origin
    assert isinstance(origin, PostgresTable)
    origin.execute(f"SELECT pg_drop_replication_slot('{origin.schema}')")

"""Runs whose state is in an object store: killed, continued on other machines, looked at."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock import app
from penstock.app import RunOptions
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.engine.batch import BatchRunner
from penstock.engine.checkpoints.state_storage import QueryStorage
from penstock.runtime.object_state import lease as leases
from penstock.runtime.object_state.mirror import ObjectStorage
from penstock.runtime.outcome import Outcome
from penstock.sdk import object_client
from servers.s3 import Bucket

pytestmark = pytest.mark.spark

PIPELINE = """\
name: shop
runtime:
  state: s3://BUCKET/states
  storage: {endpoint_url: "${ENDPOINT}", auth: {access_key: "${KEY}", secret_key: "${SECRET}"}}
sources:
  orders:
    type: files
    path: "ROOT/in/*.jsonl"
    schema: id LONG, item STRING, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
    order: name
    max_files: 1
    watch: true
transforms:
  minutes:
    type: sql
    sql: |
      SELECT window.start AS minute, count(*) AS n FROM orders GROUP BY window(at, '1 minute')
  totals:
    type: sql
    sql: SELECT item, count(*) AS n FROM orders GROUP BY item
sinks:
  kept: {type: files, from: orders, path: ROOT/kept, format: json}
  by_minute: {type: files, from: minutes, path: ROOT/minutes, format: json}
  by_item: {type: files, from: totals, path: ROOT/items, format: debezium_json}
"""
FILES, ROWS = 5, 20


class Killed(Exception):
    """An end of a run that leaves the lease and the local files as they are."""


class Machines:
    """Machines that run the pipeline, each with directories of its own."""

    def __init__(
        self, root: Path, spark: SparkSession, bucket: Bucket, patch: pytest.MonkeyPatch
    ) -> None:
        self.root, self.spark, self.bucket, self.patch = root, spark, bucket, patch
        storage = bucket.server.storage
        patch.setenv("ENDPOINT", storage["endpoint_url"])
        patch.setenv("KEY", storage["auth"]["access_key"])
        patch.setenv("SECRET", storage["auth"]["secret_key"])

    def enter(self, name: str) -> Path:
        """Returns the pipeline file on a machine, which later calls use."""
        directory = self.root / "machines" / name
        directory.mkdir(parents=True, exist_ok=True)
        self.patch.setenv("PENSTOCK_CACHE", str(directory / "cache"))
        text = PIPELINE.replace("BUCKET", self.bucket.name).replace("ROOT", str(self.root))
        (directory / "shop.yaml").write_text(text)
        return directory / "shop.yaml"

    def run(self, name: str) -> Outcome:
        options = RunOptions(until="caught_up")
        return app.run(self.enter(name), spark=self.spark.newSession(), options=options)

    def run_killed(self, name: str, target: type, method: str, when: Callable[..., bool]) -> None:
        """Runs to the end of a call of a method for which `when` holds, and no further."""
        original = getattr(target, method)

        def call(self: Any, *given: Any) -> Any:
            result = original(self, *given)
            if when(self, *given):
                raise Killed("killed")
            return result

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(target, method, call)
            patch.setattr(ObjectStorage, "_release", lambda self: None)
            outcome = self.run(name)
        assert any("killed" in format_error(error) for error in outcome.errors.values()), outcome

    def rows(self, directory: str) -> list[dict[str, Any]]:
        paths = sorted((self.root / directory).glob("[!.]*.json*"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


@pytest.fixture
def machines(
    tmp_path: Path, penstock_spark: SparkSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> Machines:
    return Machines(tmp_path, penstock_spark, bucket, monkeypatch)


def put_orders(root: Path) -> list[dict[str, Any]]:
    """Writes files of orders, each with a bad line. Returns the orders."""
    (root / "in").mkdir()
    orders = []
    for number in range(FILES):
        part = [
            {"id": i, "item": f"item-{i % 3}", "at": f"2026-03-01T10:0{number}:{i % ROWS:02}Z"}
            for i in range(number * ROWS, (number + 1) * ROWS)
        ]
        lines = [*map(json.dumps, part), f'{{"id": "bad-{number}"}}']
        (root / f"in/{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        orders += part
    return orders


def test_a_killed_run_continues_exactly_on_another_machine(
    tmp_path: Path, machines: Machines, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = put_orders(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(leases, "has_ended", lambda lease: True)
        # Killed with a planned batch of which nothing is written.
        machines.run_killed("a", BatchRunner, "_begin", lambda _, number: number == 1)
        # Killed with a written batch whose commit, state and dead letters are not stored.
        machines.run_killed("b", BatchRunner, "_run", lambda _, root, batch: batch.number == 2)
        # Killed with the state of a batch in the store, but not its commit.
        kept = len(machines.rows("kept"))
        machines.run_killed(
            "c", QueryStorage, "stage", lambda _: len(machines.rows("kept")) > kept + ROWS
        )
        outcome = machines.run("d")
    assert outcome.ending == "caught_up" and not outcome.errors, outcome
    assert sorted(row["id"] for row in machines.rows("kept")) == [o["id"] for o in orders]
    minutes = [row["n"] for row in machines.rows("minutes")]
    assert minutes == [ROWS] * (FILES - 2)  # the others are not closed
    totals: Counter[str] = Counter()
    for change in machines.rows("items"):
        for row, sign in ((change["after"], 1), (change["before"], -1)):
            if row is not None:
                totals[row["item"]] += sign * row["n"]
    assert totals == Counter(order["item"] for order in orders)
    look(machines, cli)


def look(machines: Machines, cli: CommandLine) -> None:
    """Uses each command that looks at the state, on machines that have not run the pipeline."""

    def said(machine: str, *words: str) -> tuple[int, str]:
        result = cli(machines.enter(machine).parent, *words)
        text = f"{result.stdout}{result.stderr}"
        assert machines.bucket.server.secret_key not in text
        return result.returncode, text

    code, text = said("e", "status", "shop.yaml", "--json")
    status = json.loads(text)
    assert code == 0 and status["owner"] is None
    assert [run["ending"] for run in status["runs"]].count("caught_up") == 1
    assert len(status["runs"]) == 4 and status["numbers"]["nodes"]["orders"]["kind"] == "source"
    code, text = said("e", "dead", "list", "shop.yaml")
    assert code == 0 and f"{FILES} dead letters" in text, text
    code, text = said("e", "explain", "shop.yaml")
    assert code == 0 and f"state: s3://{machines.bucket.name}/states/shop, copy in" in text, text
    code, text = said("e", "check", "shop.yaml", "--level", "connect")
    assert code == 0, text
    code, text = said("e", "stop", "shop.yaml")
    assert "shop is not running" in text, text
    code, text = said("e", "tap", "shop.yaml", "orders")
    assert "error[not-running]" in text, text
    code, text = said("f", "dead", "replay", "shop.yaml", "--force")
    assert "0 dead letters replayed" in text and f"{FILES} failed again" in text, text
    code, text = said("g", "dead", "remove", "shop.yaml", "--yes")
    assert code == 0 and f"removed {FILES}" in text, text
    code, text = said("h", "dead", "list", "shop.yaml")
    assert code == 0 and "bad-" not in text and f"{FILES} dead" not in text, text


def test_an_outage_is_retried_and_then_ends_the_run(
    tmp_path: Path, machines: Machines, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = put_orders(tmp_path)
    monkeypatch.setitem(object_client.RETRIES, "max_retries", 0)
    path = machines.enter("a")
    text = path.read_text().replace(
        "runtime:\n", "runtime:\n  restart: {attempts: 1, backoff: 10ms}\n"
    )
    path.write_text(
        text[: text.index("transforms:")] + text[text.index("sinks:") : text.index("  by_minute")]
    )
    begin = BatchRunner._begin

    def cut(self: Any, number: int) -> Any:
        batch = begin(self, number)
        if number == 2:
            bucket.server.gate.stop()
        return batch

    options = RunOptions(until="caught_up")
    with monkeypatch.context() as patch:
        patch.setattr(BatchRunner, "_begin", cut)
        try:
            outcome = app.run(path, spark=machines.spark.newSession(), options=options)
            errors = list(outcome.errors.values())
        except PenstockError as error:
            errors = [error]
        finally:
            bucket.server.gate.heal()
    texts = "\n".join(map(format_error, errors))
    assert "error[unavailable]" in texts and f"could not write {bucket.url}/states/shop" in texts
    assert bucket.server.secret_key not in texts
    monkeypatch.setattr(leases, "has_ended", lambda lease: True)
    outcome = app.run(path, spark=machines.spark.newSession(), options=options)
    assert outcome.ending == "caught_up", outcome
    assert sorted(row["id"] for row in machines.rows("kept")) == [o["id"] for o in orders]

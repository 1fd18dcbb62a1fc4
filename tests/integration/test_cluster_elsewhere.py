"""A driver with its state in an object store, killed, and started on another machine."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from cluster_runs import rows_of

from penstock.core.cache import cache_directory
from servers.s3 import Bucket
from servers.spark import SparkCluster, namespace

pytestmark = pytest.mark.spark
PIPELINE = """\
name: moved
runtime:
  master: MASTER
  state: s3://BUCKET/states
  storage: {endpoint_url: "${ENDPOINT}", auth: {access_key: "${KEY}", secret_key: "${SECRET}"}}
  spark: {spark.executor.memory: 512m}
sources:
  in: {type: files, path: "ROOT/in/*.json", order: name, max_files: 1, schema: n INT, watch: true}
transforms:
  held:
    type: python
    from: in
    per: row
    schema: n INT
    code: |
      import time
      from pathlib import Path

      def transform(row):
          if row["n"] == 150:
              Path("ROOT/held").touch()
              while not Path("ROOT/go").exists():
                  time.sleep(0.02)
          return row
  totals:
    type: sql
    sql: SELECT n % 3 AS k, count(*) AS n, sum(n) AS total FROM held GROUP BY ALL
sinks:
  rows: {type: files, from: held, path: ROOT/out, format: json}
  table: {type: sqlite, from: totals, path: ROOT/t.db, table: t, mode: upsert, primary_key: [k]}
"""
NUMBERS = [n for n in range(300) if n % 100 != 7]
WAIT_SECONDS = 300


class Machine:
    """A machine with a name and a disk of its own, on which a driver runs."""

    def __init__(self, name: str, root: Path, values: dict[str, str]) -> None:
        self.directory, self._name = root / name, name
        self._cache = self.directory / "cache"
        self._cache.mkdir(parents=True)
        classes = cache_directory() / "classes"
        classes.mkdir(parents=True, exist_ok=True)
        (self._cache / "classes").symlink_to(classes)
        text = PIPELINE
        for word, value in values.items():
            text = text.replace(word, value)
        (self.directory / "moved.yaml").write_text(text)

    def start(self, storage: dict[str, Any], *arguments: str) -> subprocess.Popen[str]:
        """Starts `penstock` on the machine."""
        environment = {
            **os.environ, "PENSTOCK_CACHE": str(self._cache),
            "SPARK_LOCAL_IP": "127.0.0.1", "ENDPOINT": storage["endpoint_url"],
            "KEY": storage["auth"]["access_key"], "SECRET": storage["auth"]["secret_key"],
        }  # fmt: skip
        script = f'hostname {self._name} && exec "$@"'
        penstock = [sys.executable, "-m", "penstock", *arguments]
        with (self.directory / "log").open("w") as log:
            return subprocess.Popen(
                [*namespace(), "sh", "-c", script, "sh", *penstock],
                cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def perform(self, storage: dict[str, Any], *arguments: str) -> str:
        """Runs `penstock` to its end and returns its output."""
        output, _ = self.start(storage, *arguments).communicate(timeout=2 * WAIT_SECONDS)
        return output

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text()


def kill(process: subprocess.Popen[str]) -> None:
    """Kills a driver with all its processes."""
    children = psutil.Process(process.pid).children(recursive=True)
    for each in (psutil.Process(process.pid), *children):
        with suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGKILL)
    process.wait()


def test_a_killed_driver_continues_on_another_machine(
    spark_cluster: SparkCluster, bucket: Bucket, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [json.dumps({"n": n}) for n in range(100 * number, 100 * number + 100)]
        lines[7] = "{damaged"
        (tmp_path / f"in/{number}.json").write_text("\n".join(lines))
    values = {"MASTER": spark_cluster.url, "BUCKET": bucket.name, "ROOT": str(tmp_path)}
    here, there = (Machine(name, tmp_path, values) for name in ("here", "there"))
    storage = bucket.server.storage
    driver, deadline = here.start(storage, "run", "moved.yaml"), time.monotonic() + WAIT_SECONDS
    while not (tmp_path / "held").exists():
        assert driver.poll() is None and time.monotonic() < deadline, here.log
        time.sleep(0.05)
    kill(driver)
    (tmp_path / "go").touch()
    there.perform(storage, "run", "moved.yaml", "--until-caught-up")
    assert sorted(row["n"] for row in rows_of(tmp_path / "out")) == NUMBERS, there.log
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        totals = {k: (n, total) for k, n, total in database.execute("SELECT * FROM t")}
    keys = [[n for n in NUMBERS if n % 3 == key] for key in range(3)]
    assert totals == {key: (len(group), sum(group)) for key, group in enumerate(keys)}
    letters = json.loads(there.perform(storage, "dead", "list", "moved.yaml", "--json"))["letters"]
    assert Counter(each["node"] for each in letters) == {"in": 3}

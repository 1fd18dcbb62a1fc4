"""A driver with its state in an object store, which is killed on one machine and continues here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from penstock.core.cache import cache_directory
from servers.s3 import Bucket
from servers.spark import SparkCluster, namespace

MOVED = """\
name: moved
runtime:
  master: MASTER
  partitions: 2
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
ONE_EXECUTOR = ("--set", "runtime.spark.spark.cores.max=1")
WAIT_SECONDS = 300


def write_moved(root: Path, cluster: SparkCluster, bucket: Bucket) -> None:
    """Writes the pipeline and three files, of which each has a damaged line."""
    (root / "in").mkdir(parents=True)
    for number in range(3):
        lines = [json.dumps({"n": n}) for n in range(100 * number, 100 * number + 100)]
        lines[7] = "{damaged"
        (root / f"in/{number}.json").write_text("\n".join(lines))
    text = MOVED
    for word, value in {"MASTER": cluster.url, "BUCKET": bucket.name, "ROOT": str(root)}.items():
        text = text.replace(word, value)
    (root / "moved.yaml").write_text(text)


def storage_variables(bucket: Bucket) -> dict[str, str]:
    """Returns the variables of the pipeline."""
    storage = bucket.server.storage
    auth = storage["auth"]
    return {
        "ENDPOINT": storage["endpoint_url"],
        "KEY": auth["access_key"],
        "SECRET": auth["secret_key"],
    }


def kill_elsewhere(root: Path, disk: Path, bucket: Bucket) -> None:
    """Runs the pipeline on a machine with a name and a `disk` of its own.

    Kills the driver with all its processes in the middle of the second batch.
    """
    cache = disk / "cache"
    cache.mkdir(parents=True)
    classes = cache_directory() / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    (cache / "classes").symlink_to(classes)
    environment = {
        **os.environ, **storage_variables(bucket), "PENSTOCK_CACHE": str(cache),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    penstock = [sys.executable, "-m", "penstock", "run", str(root / "moved.yaml"), *ONE_EXECUTOR]
    with (disk / "log").open("w") as log:
        driver = subprocess.Popen(
            [*namespace(), "sh", "-c", 'hostname elsewhere && exec "$@"', "sh", *penstock],
            cwd=disk, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    deadline = time.monotonic() + WAIT_SECONDS
    try:
        while not (root / "held").exists():
            log_so_far = (disk / "log").read_text()
            assert driver.poll() is None and time.monotonic() < deadline, log_so_far
            time.sleep(0.05)
    finally:
        _kill(driver)
    (root / "go").touch()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.NoSuchProcess):
        driver = psutil.Process(process.pid)
        for each in (driver, *driver.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGKILL)
    process.wait()

"""Losses of a standalone cluster in the middle of batches, and the pipeline that has them."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from servers.spark import SparkCluster

LOSSES = """\
name: losses
runtime: {master: "MASTER", state: STATE, restart: {backoff: 100ms}}
sources:
  in:
    type: files
    path: in/*.json
    order: name
    max_files: 1
    format: json
    schema: n INT
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
          if row["n"] % 100 == 50:
              Path("HELD", f"held-{row['n'] // 100}").touch()
              while not Path("HELD", f"go-{row['n'] // 100}").exists():
                  time.sleep(0.02)
          return row
  totals:
    type: sql
    sql: SELECT n % 3 AS k, count(*) AS n, sum(n) AS total FROM held GROUP BY ALL
sinks:
  rows: {type: files, from: held, path: out, format: json}
  table:
    {type: sqlite, from: totals, path: totals.db, table: totals, mode: upsert, primary_key: [k]}
"""
"""A pipeline of a batch for each loss. Each task waits in the middle of its rows."""


class Losses:
    """Losses of the cluster in the middle of a batch, each in a batch of its own."""

    def __init__(self, cluster: SparkCluster, directory: Path) -> None:
        self._cluster, self._directory = cluster, directory
        self.ended = threading.Event()
        self.all: tuple[Callable[[], None], ...] = (
            self._master, self._executors, self._disks
        )  # fmt: skip

    def write_input(self) -> None:
        """Writes a file for each loss, of which one line is damaged."""
        (self._directory / "in").mkdir()
        for number in range(len(self.all)):
            lines = [json.dumps({"n": n}) for n in range(100 * number, 100 * number + 100)]
            lines[7] = "{damaged"
            (self._directory / f"in/{number}.json").write_text("\n".join(lines))

    def suffer(self) -> None:
        """Has each loss while a task waits, and then lets the task proceed."""
        for number, loss in enumerate(self.all):
            self._await(lambda number=number: (self._directory / f"held-{number}").exists())
            loss()

    def _go(self, number: int) -> None:
        (self._directory / f"go-{number}").touch()

    def _master(self) -> None:
        """The batch ends without the master, which then starts again."""
        self._cluster.master.kill()
        self._go(0)
        self._await(lambda: any(self._state.glob("checkpoints/*/commits/0")))
        self._cluster.master.start()

    def _executors(self) -> None:
        for worker in self._cluster.workers.values():
            worker.signal_executors(signal.SIGKILL)
        self._go(1)

    def _disks(self) -> None:
        """The disks of executors are full until a query is started again because of it."""
        for worker in self._cluster.workers.values():
            worker.fill_disk()
        self._go(2)
        self._await(lambda: "is full" in (self._state / "status.json").read_text())
        for worker in self._cluster.workers.values():
            worker.free_disk()

    @property
    def _state(self) -> Path:
        return self._directory / "state" / "losses"

    def _await(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            assert not self.ended.wait(0.02), "the run ended before all losses"

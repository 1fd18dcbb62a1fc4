"""Received messages and a table in a local file, on executors that share no path with the driver.

A thread sends messages by HTTP, changes the table during the run, and stops a run that has unread
messages. A task kills its executor.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

from cluster_pipelines import READING
from cluster_runs import rows_of

from penstock import app
from penstock.control import PipelineControl
from servers.server import free_port
from servers.spark import SparkCluster

MESSAGES = """\
name: messages
runtime:
  master: MASTER
  state: state
  restart: {backoff: 100ms}
  spark: {spark.executor.memory: 512m}
sources:
  in: {type: http, listen: "127.0.0.1:PORT", framing: lines, schema: n INT, max_records: 100}
  names: {type: sqlite, path: names.db, table: names, primary_key: [d], lookup: true}
transforms:
  read: {type: python, from: in, per: row, function: "receiving:transform", schema: n INT}
  named: {type: sql, sql: "SELECT n, name FROM read JOIN names ON n % 5 = d"}
sinks:
  out: {type: files, from: named, path: OUT, format: json}
"""
REPLAYED = """\
name: replayed
runtime: {master: "MASTER", state: state, spark: {spark.executor.memory: 512m}}
sources:
  in: {type: generate, rows: 20, fields: {n: sequence}}
  names: {type: sqlite, path: names.db, table: names, primary_key: [d], lookup: true}
transforms:
  read:
    type: python
    from: in
    per: row
    schema: n LONG
    code: |
      from pathlib import Path

      def transform(row):
          if row["n"] == 7 and not Path("MENDED").exists():
              raise ValueError("not mended")
          return row
  named: {type: sql, sql: "SELECT n, name FROM read JOIN names ON n % 5 = d"}
sinks:
  out: {type: files, from: named, path: REPLAYED_ROWS, format: json}
"""
DAMAGED = range(7, 400, 30)
NUMBERS = [number for number in range(400) if number not in DAMAGED]
CHANGED = 200
"""The first message after the change of the table."""


class Sender:
    """A sender of the messages, beside the runs."""

    def __init__(self, port: int, project: Path, out: Path) -> None:
        self._port, self._project, self._out = port, project, out
        self.ended = threading.Event()

    def send_all(self) -> None:
        """Sends all messages of the first run, and stops it."""
        self._await(lambda: self._send(range(CHANGED)))
        self._await(lambda: len(rows_of(self._out)) == sum(n < CHANGED for n in NUMBERS))
        write_names(self._project, "changed")
        assert self._send(range(CHANGED, 400))
        plan = app.plan(self._project / "messages.yaml")
        assert PipelineControl.of(plan).stop(120) is not None

    def _send(self, numbers: Iterable[int]) -> bool:
        """Sends a request. Returns whether its messages are acknowledged."""
        lines = ["{damaged" if n in DAMAGED else json.dumps({"n": n}) for n in numbers]
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            try:
                connection.request("POST", "/", "\n".join(lines))
            except ConnectionRefusedError:
                return False
            return connection.getresponse().status == 200

    def _await(self, is_true: Callable[[], bool]) -> None:
        while not is_true():
            assert not self.ended.is_set(), "the runs ended before all messages"
            time.sleep(0.05)


def write_names(project: Path, prefix: str) -> None:
    """Writes the rows of the table."""
    with closing(sqlite3.connect(project / "names.db")) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS names (d INTEGER PRIMARY KEY, name TEXT)")
        rows = [(d, f"{prefix}{d}") for d in range(5)]
        database.executemany("INSERT OR REPLACE INTO names VALUES (?, ?)", rows)


def write_messages(project: Path, out: Path, cluster: SparkCluster) -> Sender:
    """Writes the pipelines and the table. Returns the sender of the first pipeline's messages."""
    port = free_port()
    write_names(project, "name")
    values = {
        "MASTER": cluster.url, "PORT": str(port), "OUT": str(out / "rows"),
        "KILLED": str(out / "killed"), "REPLAYED_ROWS": str(out / "replayed"),
        "MENDED": str(out / "mended"), "FATAL": "151",
    }  # fmt: skip
    texts = {"messages.yaml": MESSAGES, "receiving.py": READING, "replayed.yaml": REPLAYED}
    for name, text in texts.items():
        for word, value in values.items():
            text = text.replace(word, value)
        (project / name).write_text(text)
    return Sender(port, project, out / "rows")

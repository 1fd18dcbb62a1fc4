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
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from cluster_pipelines import EXECUTORS, READING
from cluster_runs import Done, dead_letters_of, perform, rows_of

from penstock import app
from penstock.control import PipelineControl
from servers.server import free_port
from servers.spark import SparkCluster

pytestmark = pytest.mark.spark
PIPELINE = """\
name: messages
runtime:
  master: MASTER
  state: state
  restart: {backoff: 100ms}
  spark: {spark.executor.memory: 512m}
sources:
  in: {type: http, listen: "127.0.0.1:PORT", framing: lines, schema: n INT, max_records: 40}
  names: {type: sqlite, path: names.db, table: names, primary_key: [d], lookup: true}
transforms:
  read: {type: python, from: in, per: row, function: "reading:transform", schema: n INT}
  named: {type: sql, sql: "SELECT n, name FROM read JOIN names ON n % 5 = d"}
sinks:
  out: {type: files, from: named, path: OUT, format: json}
"""
REPLAYED = """\
name: replayed
runtime: {master: "MASTER", state: replayed, spark: {spark.executor.memory: 512m}}
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
  out: {type: files, from: named, path: OUT-replayed, format: json}
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


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the sink, which all machines share."""
    return tmp_path_factory.mktemp("messages")


@pytest.fixture(scope="module")
def ran(spark_cluster: SparkCluster, out: Path) -> list[Done]:
    """The results of two runs, and of `penstock dead list`."""
    project, port = spark_cluster.hidden / "messages", free_port()
    project.mkdir()
    write_names(project, "name")
    values = {
        "MASTER": spark_cluster.url, "PORT": str(port), "OUT": str(out / "rows"),
        "KILLED": str(out / "killed"),
    }  # fmt: skip
    values["MENDED"] = str(out / "mended")
    texts = {
        "messages.yaml": PIPELINE, "reading.py": READING, "executors.py": EXECUTORS,
        "replayed.yaml": REPLAYED,
    }  # fmt: skip
    for name, text in texts.items():
        for word, value in values.items():
            text = text.replace(word, value)
        (project / name).write_text(text)
    file, sender = str(project / "messages.yaml"), Sender(port, project, out / "rows")
    replayed = str(project / "replayed.yaml")
    commands = [
        ["run", file], ["run", file, "--until-caught-up"],
        ["dead", "list", file, "--json", "--limit", "1000"],
        ["run", replayed], ["write", values["MENDED"], ""], ["dead", "replay", replayed],
        ["preview", replayed, "named"],
    ]  # fmt: skip
    with ThreadPoolExecutor(1) as thread:
        sent = thread.submit(sender.send_all)
        try:
            done = perform(out, commands, file)
        finally:
            sender.ended.set()
        sent.result()
    return done


def test_each_message_is_read_once(ran: list[Done], out: Path) -> None:
    for done in ran[:3]:
        assert done.returncode == 0, done.stderr
    assert (out / "killed").exists(), "an executor was killed"
    rows = rows_of(out / "rows")
    assert sorted(row["n"] for row in rows) == NUMBERS
    letters = dead_letters_of(ran[2])
    assert sum(letters.values()) == len(DAMAGED) and {node for node, _, _ in letters} == {"in"}


def test_rows_of_a_table_that_changes_during_a_run(ran: list[Done], out: Path) -> None:
    names = {row["n"]: row["name"] for row in rows_of(out / "rows")}
    assert names == {n: f"{'name' if n < CHANGED else 'changed'}{n % 5}" for n in NUMBERS}


def test_lookups_of_a_replay_and_a_preview(ran: list[Done], out: Path) -> None:
    *_, first, _, replayed, preview = ran
    assert first.returncode == replayed.returncode == 0, first.stderr + replayed.stderr
    rows = rows_of(out / "rows-replayed")
    assert len(rows) == 20 and {row["n"]: row["name"] for row in rows} == {
        row["n"]: f"changed{row['n'] % 5}" for row in rows
    }
    assert preview.stderr == ""
    previewed = json.loads(preview.stdout)["named"]
    assert sorted(previewed, key=lambda row: row["n"]) == sorted(rows, key=lambda row: row["n"])

"""`penstock run`, `status` and `stop`: signals and terminals with processes, the rest without."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from command_line import CommandLine
from penstock import app
from penstock.runtime.state.directory import StateDirectory
from terminal import PENSTOCK, TIMEOUT_SECONDS, Terminal

pytestmark = pytest.mark.spark

SPARKS_OWN = re.compile(r"\b(WARN|INFO)\b|org\.apache\.spark|Setting default log level|Picked up")

ENDLESS = """\
name: endless
sources:
  clicks: {type: generate, rate: 200, fields: {id: sequence}}
sinks:
  nowhere: {type: blackhole, from: clicks}
"""
DIRTY = """\
name: dirty
sources:
  rows: {type: files, path: "*.csv", schema: "id INT, n INT"}
transforms:
  halves: {type: sql, sql: "SELECT id, 10 / n AS q FROM rows", on_error: dead_letter}
sinks:
  shown: {type: print, from: halves}
"""
STUCK = """\
name: stuck
sources:
  rows: {type: files, path: "*.csv", schema: "id INT, text STRING"}
  many: {type: generate, rate: 200, fields: {id: sequence}}
  clicks: {type: generate, rows: 10, fields: {id: sequence}}
transforms:
  wait:
    type: python
    from: clicks
    schema: id BIGINT
    code: |
      import pathlib, time
      def transform(batch):
          pathlib.Path("begun").touch()
          time.sleep(3600)
          return batch
sinks:
  shown: {type: print, from: rows}
  counted: {type: blackhole, from: many}
  nowhere: {type: blackhole, from: wait}
"""
"""A pipeline of which a batch never ends."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `penstock` in the background; it is gone when the test ends."""
    running: list[tuple[subprocess.Popen[str], threading.Timer]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PENSTOCK, *words], cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.append((process, threading.Timer(TIMEOUT_SECONDS, process.kill)))
        running[-1][1].start()
        return process

    yield start
    for process, timer in running:
        timer.cancel()
        process.kill()
        process.communicate()


@pytest.fixture
def _sigterm_is_an_error() -> Iterator[None]:
    """Raises AssertionError for a signal that no run handles, in place of the end of the tests."""

    def fail(*_: object) -> None:
        raise AssertionError("no run handles SIGTERM")

    before = signal.signal(signal.SIGTERM, fail)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    running: list[Terminal] = []

    def start(*words: str) -> Terminal:
        running.append(Terminal([*PENSTOCK, *words], tmp_path))
        return running[-1]

    yield start
    for each in running:
        each.close()


def put(directory: Path, text: str, name: str = "p.yaml") -> str:
    (directory / name).write_text(text)
    return name


def put_dirty(directory: Path) -> str:
    (directory / "a.csv").write_text("id,n\n1,2\n2,x\n3,5\n4,0\n")
    return put(directory, DIRTY)


def until_it_runs(state: StateDirectory, batches: int = 1) -> None:
    """Waits until a run reports batches."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (state.read("status.json") or {"batches": 0})["batches"] < batches:
        assert time.monotonic() < deadline, "no batch"
        time.sleep(0.05)


def family(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    """A process and all that it started."""
    return [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]


def assert_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive


def test_without_a_terminal_there_are_log_lines(tmp_path: Path, cli: CommandLine) -> None:
    file = put_dirty(tmp_path)
    done = cli(tmp_path, "run", file)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"id": 1, "q": 5.0},
        {"id": 3, "q": 2.0},
    ]
    events = [line.split("] ")[1].split(" name=")[0] for line in done.stderr.splitlines()]
    assert events[0] == "starting"
    assert events[-1].startswith("ended outcome=complete hint='2 dead letters; run: ")
    assert "penstock dead list p.yaml" in events[-1]
    assert "rows.rows=3" in events[-1]


def test_json_log_and_a_failure(tmp_path: Path, cli: CommandLine) -> None:
    put_dirty(tmp_path)
    letters = "dead_letter: {type: http, url: 'http://made.example.com', auth: {token: x}}\n"
    file = put(tmp_path, DIRTY.replace("on_error: dead_letter", "on_error: fail") + letters)
    done = cli(tmp_path, "run", file, "--log", "json", "--log-level", "info")
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    (no_tls,) = [line for line in lines if line["event"] == "no TLS"]
    assert "made.example.com has credentials" in no_tls["reason"]
    assert no_tls["level"] == "warning" and "p.yaml:" in no_tls["at"]
    error = next(line for line in lines if line["event"] == "error")
    assert (error["code"], error["query"], error["level"]) == ("divide-by-zero", "rows", "error")
    assert (lines[-1]["event"], lines[-1]["outcome"]) == ("ended", "failed")
    assert lines[-1]["nodes"]["shown"]["rows"] == 0
    assert not done.stdout


def test_quiet_shows_rows_and_errors_only(tmp_path: Path, cli: CommandLine) -> None:
    file = put_dirty(tmp_path)
    done = cli(tmp_path, "run", file, "--quiet")
    closing = "dirty: 2 dead letters; run: penstock dead list p.yaml\n"
    assert (done.returncode, done.stderr) == (0, closing)
    assert len(done.stdout.splitlines()) == 2
    done = cli(
        tmp_path, "run", file, "--quiet", "--fresh", "--fail-on-dead-letters", "--log", "json"
    )
    closing, error = map(json.loads, done.stderr.splitlines())
    assert (closing["event"], closing["count"]) == ("dead letters", 2)
    assert (error["code"], done.returncode) == ("dead-letters", 1)
    done = cli(tmp_path, "run", "--quiet", "--fresh", "--fail-on-dead-letters=3", file)
    assert done.returncode == 0
    done = cli(tmp_path, "run", file, "--quiet", "--master", "nowhere")
    assert done.returncode == 2
    assert 'found "nowhere"' in done.stderr


def test_ctrl_c_twice_on_a_terminal(
    tmp_path: Path, terminal: Callable[..., Terminal], cli: CommandLine
) -> None:
    """The terminal shows whole rows and a summary. Another run is an error meanwhile."""
    long = "x" * 150
    (tmp_path / "a.csv").write_text(f"id,text\n1,{long}\n2,short\n")
    file = put(tmp_path, STUCK)
    run = terminal("run", file)
    run.until("starting Spark")
    run.until('"text":"short"')
    until_it_runs(StateDirectory(tmp_path / ".penstock" / "stuck"), batches=3)
    status = json.loads(cli(tmp_path, "status", file, "--json").stdout)
    assert (status["running"], status["owner"]["pid"]) == (True, run.process.pid)
    assert status["numbers"]["batches"] >= 3
    shown = cli(tmp_path, "status", file)
    assert shown.returncode == 0
    assert f"process {run.process.pid} on" in shown.stdout
    again = cli(tmp_path, "run", file)
    assert again.returncode == 4
    assert "error[already-running]" in again.stderr
    while not (tmp_path / "begun").exists():
        assert run.read(), run.text
    processes = family(run.process)
    assert len(processes) > 2
    run.process.send_signal(signal.SIGINT)
    run.until("finishing the batch; Ctrl-C again stops immediately")
    run.process.send_signal(signal.SIGINT)
    run.until("stopping immediately")
    assert run.end() == 0
    assert f'{{"id":1,"text":"{long}"}}\n{{"id":2,"text":"short"}}\n' in run.text
    assert re.search(r"stuck stopped \(Ctrl-C\)  \d.* · \d+ batch", run.text)
    summary = run.text[run.text.rindex("stopped (Ctrl-C)") :]
    assert re.search(r"rows +files +2\b", summary)
    assert re.search(r"shown +print +2\b", summary)
    assert not SPARKS_OWN.search(run.text)
    assert_gone(processes)


@pytest.mark.usefixtures("_sigterm_is_an_error")
def test_sigterm_finishes_the_batch(tmp_path: Path, cli: CommandLine) -> None:
    file, state = put(tmp_path, ENDLESS), StateDirectory(tmp_path / ".penstock" / "endless")
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(_terminate_after, state, batches=2)
        done = cli(tmp_path, "run", file)
        stopping.result()
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert "] starting name=endless" in lines[0]
    assert " outcome=stopped reason=SIGTERM " in lines[-1]
    rows = dict(re.findall(r"(\w+)\.rows=(\d+)", lines[-1]))
    assert rows["clicks"] == rows["nowhere"] != "0"


def _terminate_after(state: StateDirectory, batches: int) -> None:
    try:
        until_it_runs(state, batches)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_while_spark_starts(
    tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    run = started("run", put(tmp_path, ENDLESS))
    assert run.stderr is not None
    assert "starting" in run.stderr.readline()
    processes = family(run)
    run.send_signal(signal.SIGTERM)
    _, errors = run.communicate(timeout=TIMEOUT_SECONDS)
    assert run.returncode == 128 + signal.SIGTERM
    assert [line.partition("] ")[2] for line in errors.splitlines()] == [
        "stopped before the start; nothing was read"
    ]
    assert_gone(processes)


def test_stop_of_a_running_pipeline(
    tmp_path: Path, cli: CommandLine, penstock_spark: SparkSession
) -> None:
    file = put(tmp_path, ENDLESS)
    state = StateDirectory(tmp_path / ".penstock" / "endless")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(app.run, tmp_path / file, spark=penstock_spark.newSession())
        try:
            until_it_runs(state)
            stopped = cli(tmp_path, "stop", file)
        except BaseException:
            (state.root / "stop").touch()
            raise
        outcome = running.result(TIMEOUT_SECONDS)
    assert (stopped.returncode, stopped.stdout) == (
        0, f"endless stopped (process {os.getpid()})\n",
    )  # fmt: skip
    assert (outcome.ending, outcome.reason) == ("stopped", "stop requested")
    assert "endless is not running" in cli(tmp_path, "stop", file).stdout
    after = json.loads(cli(tmp_path, "status", file, "--json").stdout)
    assert not after["running"]
    assert after["runs"][0]["ending"] == "stopped"


def test_stop_that_waits_in_vain_says_so(tmp_path: Path, cli: CommandLine) -> None:
    file = put(tmp_path, STUCK)
    state = StateDirectory(tmp_path / ".penstock" / "stuck")
    with state.locked():
        done = cli(tmp_path, "stop", file, "--timeout", "300ms")
        assert (state.root / "stop").exists()
    assert done.returncode == 4
    assert "error[still-running]" in done.stderr


def test_until_caught_up_and_fresh(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    file = put(
        tmp_path,
        'name: tail\nsources:\n  rows: {type: files, path: "*.csv", schema: id INT, watch: true}\n'
        "sinks:\n  shown: {type: print, from: rows}\n",
    )
    first = cli(tmp_path, "run", file, "--until-caught-up")
    assert (first.returncode, len(first.stdout.splitlines())) == (0, 2)
    assert "outcome=caught_up" in first.stderr
    second = cli(tmp_path, "run", file, "--until-caught-up")
    assert (second.returncode, second.stdout) == (0, "")
    fresh = cli(tmp_path, "run", file, "--until-caught-up", "--fresh")
    assert (fresh.returncode, fresh.stdout) == (0, first.stdout)
    assert "Reset state: removed offsets" in fresh.stderr

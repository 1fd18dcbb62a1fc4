"""Runs on a standalone cluster of two workers, with and without a shared state directory."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from command_line import CommandLine
from servers.certificates import Authority
from servers.spark import SparkCluster
from servers.web import Web

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]

TOTALS = """\
name: totals
runtime:
  master: MASTER
  state: STATE
  spark: {spark.executor.memory: 512m}
sources:
  in:
    type: files
    path: ../in.json
    format: json
    schema: k STRING, n INT
    max_size: 1KB
    watch: true
transforms:
  totals: {type: sql, sql: "SELECT k, count(*) AS n, sum(n) AS total FROM in GROUP BY k"}
sinks:
  out: {type: sqlite, from: totals, path: totals.db, table: totals, mode: upsert}
"""
ROWS = """\
name: rows
runtime: {master: "MASTER", state: STATE}
sources:
  in: {type: files, path: ../in.json, format: json, schema: "k STRING, n INT", max_size: 4KB}
transforms:
  divided: {type: sql, sql: "SELECT k, n, 100 DIV (n % 50) AS q FROM in"}
  checked:
    type: python
    from: divided
    per: row
    schema: k STRING, n INT, q LONG
    code: |
      import os
      import signal
      from pathlib import Path

      def transform(row):
          if row["n"] % 40 == 7:
              raise ValueError("no sevens")
          if row["n"] == 251 and os.environ.get("SPARK_EXECUTOR_DIRS") and once("KILLED"):
              os.kill(executor(), signal.SIGKILL)
          return row

      def once(path):
          try:
              Path(path).touch(exist_ok=False)
          except FileExistsError:
              return False
          return True

      def executor():
          pid = os.getpid()
          while b"java" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0")[0]:
              pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
          return pid
sinks:
  out: {type: files, from: checked, path: OUT, format: json}
"""
GROUPS = """\
name: groups
runtime: {master: "MASTER", state: state}
sources:
  in: {type: files, path: NUMBERS, format: json, schema: n INT, max_size: 1KB, watch: true}
  names:
    type: files
    path: names.json
    format: json
    schema: d INT, name STRING
    primary_key: [d]
    lookup: true
transforms:
  read: {type: python, from: in, per: row, function: "reading:transform", schema: n INT}
  named: {type: sql, sql: "SELECT n, name FROM read JOIN names ON n % 5 = d"}
  groups:
    type: sql
    sql: |
      SELECT name, count(*) AS numbers, sum(c) AS total, max(c) AS most
      FROM (SELECT n % 50 AS g, name, count(*) AS c FROM named GROUP BY n % 50, name)
      GROUP BY name
sinks:
  out: {type: sqlite, from: groups, path: DATABASE, table: groups, mode: upsert}
  pushed: {type: http, from: named, url: URL, framing: array, tls: {ca: Tests.root.pem}}
"""
"""Pipeline with a state, a lookup table, modules and a certificate that only the driver has."""
READING = """\
import os
import signal
from pathlib import Path

from executors import executor

def transform(row):
    if row["n"] == 151 and os.environ.get("SPARK_EXECUTOR_DIRS"):
        try:
            Path("KILLED").touch(exist_ok=False)
        except FileExistsError:
            return row
        os.kill(executor(), signal.SIGKILL)
    return row
"""
EXECUTORS = """\
import os
from pathlib import Path

def executor():
    pid = os.getpid()
    while b"java" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0")[0]:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid
"""
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
BAD = 10
GOOD = [number for number in range(300) if number % 30]
GROUP_ROWS = {f"name{d}": (10, 80, 8) for d in range(5)}
"""The rows of the pipeline `groups` after the numbers 0 to 399."""
TOTAL_ROWS = {
    f"k{key}": (len(numbers), sum(numbers))
    for key in range(3)
    for numbers in [[number for number in GOOD if number % 3 == key]]
}
FAILING = ("in", "divided", "checked")
ALL = "--json --limit 1000"
PROGRAM = """
import json, sys
from pathlib import Path
from command_line import CommandLine
from penstock import app

def perform(command):
    if command[0] == "write":
        Path(command[1]).write_text(command[2])
        return {"args": command, "returncode": 0, "stdout": "", "stderr": ""}
    return vars(CommandLine(spark)(Path(), *command))

with app.session(app.plan(sys.argv[2])) as spark:
    print(json.dumps([perform(command) for command in json.loads(sys.argv[1])]))
"""
"""Commands in one application of the cluster, which has a driver and two executors."""
OTHER_VERSION = """
import sys
from pathlib import Path
from types import ModuleType

import penstock.core.version as version

class Version(ModuleType):
    SPARK_VERSION = version.SPARK_VERSION

    @property
    def __version__(self):
        return "0.0.1" if Path("FILE").exists() else version.__version__

sys.modules["penstock.core.version"] = Version("penstock.core.version")
"""
"""Makes the version of Penstock another one where a file exists."""

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def directory(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pipelines: on the cluster with shared and with hidden paths, and on this machine."""
    directory = tmp_path_factory.mktemp("cluster")
    lines = [json.dumps({"k": f"k{number % 3}", "n": number}) for number in range(300)]
    lines[::30] = ["{damaged"] * BAD
    (directory / "in.json").write_text("\n".join(lines) + "\n")
    hidden, url = str(spark_cluster.hidden), spark_cluster.url
    defaults = {"MASTER": url, "OUT": "out", "KILLED": str(directory / "killed")}
    files = {
        "shared/totals": (TOTALS, {"STATE": "state"}),
        "refused/totals": (TOTALS, {}),
        "refused/rows": (ROWS, {"OUT": f"{hidden}/out"}),
        "hidden/rows": (ROWS, {}),
        "losses/losses": (LOSSES, {"STATE": "state", "HELD": str(directory / "losses")}),
        "local/rows": (ROWS, {"MASTER": "local[2]", "STATE": "state"}),
    }
    for name, (text, values) in files.items():
        path = directory / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        state = f"{hidden}/{path.parent.name}"
        for word, value in {**defaults, "STATE": state, **values}.items():
            text = text.replace(word, value)
        path.write_text(text)
    return directory


@pytest.fixture(scope="module")
def project(spark_cluster: SparkCluster, directory: Path) -> Iterator[Path]:
    """A project with its state in a directory that executors do not have."""
    project = spark_cluster.hidden / "project"
    project.mkdir()
    numbers, authority = directory / "numbers", Authority(project)
    numbers.mkdir()
    (numbers / "0.json").write_text(_numbers(0, 300))
    names = (json.dumps({"d": d, "name": f"name{d}"}) for d in range(5))
    (project / "names.json").write_text("\n".join(names))
    with Web(certificate=authority.issue("web")) as web:
        values = {
            "MASTER": spark_cluster.url, "NUMBERS": f"{numbers}/*.json",
            "DATABASE": str(directory / "groups.db"), "KILLED": str(directory / "killed-groups"),
            "URL": f"https://127.0.0.1:{web.port}/kept/rows",
        }  # fmt: skip
        texts = {"groups.yaml": GROUPS, "reading.py": READING, "executors.py": EXECUTORS}
        for name, text in texts.items():
            for word, value in values.items():
                text = text.replace(word, value)
            (project / name).write_text(text)
        yield project


def _numbers(start: int, end: int) -> str:
    return "".join(json.dumps({"n": number}) + "\n" for number in range(start, end))


@pytest.fixture(scope="module")
def ran(spark_cluster: SparkCluster, directory: Path, project: Path) -> dict[str, Done]:
    """The results of commands, by their words."""
    worker = spark_cluster.workers["node-b"]
    other = f"{spark_cluster.hidden}/other"
    worker.path("sitecustomize.py").write_text(OTHER_VERSION.replace("FILE", other))
    commands = [
        "run shared/totals.yaml --until-caught-up", "dead list shared/totals.yaml",
        "run refused/totals.yaml", "run refused/rows.yaml",
        "run losses/losses.yaml", "dead list losses/losses.yaml --json",
        "run hidden/rows.yaml", "status hidden/rows.yaml --json",
        f"dead list hidden/rows.yaml {ALL}",
    ]  # fmt: skip
    write = ["write", str(worker.path("other")), ""]
    groups = str(project / "groups.yaml")
    words = [
        *(command.split() for command in commands),
        ["run", groups, "--until-caught-up"],
        ["write", str(directory / "numbers/1.json"), _numbers(300, 400)],
        ["run", groups, "--until-caught-up", "--quiet"],
        ["status", groups, "--json"],
        write,
        ["run", "hidden/rows.yaml", "--fresh"],
    ]
    words.insert(0, deployed_run(directory / "visits", spark_cluster.url))
    losses = Losses(spark_cluster, directory / "losses")
    losses.write_input()
    with ThreadPoolExecutor(1) as thread:
        suffered = thread.submit(losses.suffer)
        try:
            done = perform(directory, words, "shared/totals.yaml")
        finally:
            losses.ended.set()
        suffered.result()
    return {" ".join(each.args[1:]): each for each in done}


def deployed_run(directory: Path, master: str) -> list[str]:
    """Returns the last command of the script that `penstock deploy` prints for the page's pipeline.

    The port of its metrics is a free one.
    """
    directory.mkdir()
    page = (ROOT / "docs/howto/cluster.md").read_text()
    block = re.search(r"```yaml title=visits.yaml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    (directory / "visits.yaml").write_text(block[1])
    deploy = ["deploy", "standalone", "visits/visits.yaml", "--master", master]
    sizes = ["--executors", "2", "--cores", "1", "--memory", "512m"]
    state = str(directory / "state")
    done = CommandLine()(directory.parent, *deploy, "--state", state, *sizes)
    assert done.returncode == 0, done.stderr
    script = done.stdout[done.stdout.index("\npenstock run") :]
    return [*shlex.split(script.replace("\\\n", " "))[1:-2], "--listen", "0"]


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


def perform(directory: Path, commands: Sequence[Sequence[str]], session: str) -> list[Done]:
    """Runs `penstock` by commands in the session of a file. Its Python is not in PATH."""
    directories = os.environ["PATH"].split(os.pathsep)
    others = [each for each in directories if Path(each) != Path(sys.executable).parent]
    modules = filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])
    environment = {
        **os.environ, "PATH": os.pathsep.join(others), "PYTHONPATH": os.pathsep.join(modules),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands), session], cwd=directory,
        capture_output=True, text=True, env=environment, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [subprocess.CompletedProcess(**each) for each in json.loads(done.stdout)]


def test_a_shared_state_directory(ran: dict[str, Done], directory: Path) -> None:
    done = ran["run shared/totals.yaml --until-caught-up"]
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(directory / "shared/totals.db")) as database:
        totals = {k: (n, total) for k, n, total in database.execute("SELECT * FROM totals")}
    assert totals == TOTAL_ROWS
    assert f"{BAD} dead letters" in ran["dead list shared/totals.yaml"].stdout
    offsets = (directory / "shared/state/totals/checkpoints/totals/offsets/0").read_text()
    assert '"spark.sql.shuffle.partitions":"2"' in offsets


def test_groups_of_a_stream_require_a_shared_state_directory(
    ran: dict[str, Done], directory: Path
) -> None:
    done = ran["run refused/totals.yaml"]
    assert done.returncode == 4 and "error[state-not-shared]" in done.stderr, done.stderr
    assert 'transform "totals" (type: sql) keeps the state of a query' in done.stderr
    assert re.search("executor on node-[ab], driver on ", done.stderr)
    assert not (directory / "refused/totals.db").exists()


def test_the_command_of_a_deployment(ran: dict[str, Done], directory: Path) -> None:
    (done,) = (each for words, each in ran.items() if "visits.yaml" in words)
    assert done.returncode == 0, done.stderr
    rows = rows_of(directory / "visits/out")
    assert sum(row["visits"] for row in rows) == 1000 and len(rows) == 3
    assert (directory / "visits/state/visits").is_dir()


def test_losses_in_the_middle_of_batches(ran: dict[str, Done], directory: Path) -> None:
    done = ran["run losses/losses.yaml"]
    assert done.returncode == 0, done.stderr
    numbers = [n for n in range(300) if n % 100 != 7]
    assert sorted(row["n"] for row in rows_of(directory / "losses/out")) == numbers
    with closing(sqlite3.connect(directory / "losses/totals.db")) as database:
        totals = {k: (n, total) for k, n, total in database.execute("SELECT * FROM totals")}
    keys = [[n for n in numbers if n % 3 == key] for key in range(3)]
    assert totals == {key: (len(group), sum(group)) for key, group in enumerate(keys)}
    assert dead_letters_of(ran["dead list losses/losses.yaml --json"]).total() == 3
    assert "code=disk-full" in done.stderr


def test_a_sink_of_files_requires_a_shared_path(ran: dict[str, Done]) -> None:
    done = ran["run refused/rows.yaml"]
    assert done.returncode == 4 and "error[path-not-shared]" in done.stderr
    assert 'sink "out" (type: files)' in done.stderr, done.stderr


def test_a_pipeline_without_state_has_the_results_of_a_local_run(
    ran: dict[str, Done], directory: Path, cli: CommandLine
) -> None:
    done = ran["run hidden/rows.yaml"]
    assert done.returncode == 0, done.stderr
    assert (directory / "killed").exists()
    commands = ("run", "status --json", f"dead list {ALL}")
    run, status, dead = (
        cli(directory, verb, *rest, "local/rows.yaml") for verb, *rest in map(str.split, commands)
    )
    assert run.returncode == 0, run.stderr
    rows, rows_of_cluster = (rows_of(directory / side / "out") for side in ("local", "hidden"))
    assert sorted(map(json.dumps, rows)) == sorted(map(json.dumps, rows_of_cluster))
    here, there = dead_letters_of(dead), dead_letters_of(ran[f"dead list hidden/rows.yaml {ALL}"])
    assert here == there and {node for node, _, _ in here} == set(FAILING)
    assert _counts(status) == _counts(ran["status hidden/rows.yaml --json"])


def test_executors_share_no_path_with_the_driver(
    ran: dict[str, Done], project: Path, directory: Path
) -> None:
    groups = project / "groups.yaml"
    for options in ("--until-caught-up", "--until-caught-up --quiet"):
        done = ran[f"run {groups} {options}"]
        assert done.returncode == 0, done.stderr
    assert (directory / "killed-groups").exists()
    with closing(sqlite3.connect(directory / "groups.db")) as database:
        rows = {name: tuple(rest) for name, *rest in database.execute("SELECT * FROM groups")}
    assert rows == GROUP_ROWS
    assert _counts(ran[f"status {groups} --json"])["pushed"] == (100, 0)


def test_an_executor_with_another_version(ran: dict[str, Done]) -> None:
    done = ran["run hidden/rows.yaml --fresh"]
    assert done.returncode == 2 and "error[other-versions]" in done.stderr, done.stderr
    assert re.search(r"executor on node-b: Penstock 0\.0\.1; driver on \S+: Penstock", done.stderr)


def rows_of(directory: Path) -> list[dict[str, object]]:
    paths = sorted(directory.glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def dead_letters_of(done: Done) -> Counter[tuple[str, str, str]]:
    letters = json.loads(done.stdout)["letters"]
    return Counter((each["node"], each["code"], str(each["payload"])) for each in letters)


def _counts(done: Done) -> dict[str, tuple[int, int]]:
    nodes = json.loads(done.stdout)["numbers"]["nodes"]
    return {name: (node["rows"], node["dead_letters"]) for name, node in nodes.items()}

"""Runs on a standalone cluster of two workers, with and without a shared state directory."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cluster_losses import Losses
from cluster_messages import CHANGED, DAMAGED, NUMBERS, write_messages
from cluster_moves import kill_elsewhere, storage_variables, write_moved
from cluster_pipelines import (
    BAD,
    CHECKED,
    GROUP_COUNTS,
    GROUP_LETTERS,
    GROUP_ROWS,
    TOTAL_ROWS,
    json_numbers,
    project,
    write_pipelines,
)
from cluster_runs import Done, dead_letters_of, perform, rows_of
from cluster_subscribers import ROWS, Subscribers, write_sockets

from command_line import CommandLine
from servers.s3 import S3
from servers.spark import SparkCluster

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]

ALL = ("--json", "--limit", "1000")
COMMANDS = (
    "run shared/totals.yaml --until-caught-up", "dead list shared/totals.yaml",
    "run refused/totals.yaml", "run refused/rows.yaml",
    "run losses/losses.yaml", "dead list losses/losses.yaml --json",
    "run moved/moved.yaml --until-caught-up", "dead list moved/moved.yaml --json",
)  # fmt: skip
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


@pytest.fixture(scope="module")
def directory(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the pipelines."""
    directory = tmp_path_factory.mktemp("cluster")
    write_pipelines(directory, spark_cluster)
    return directory


@pytest.fixture(scope="module", name="project")
def _project(spark_cluster: SparkCluster, directory: Path) -> Iterator[Path]:
    with project(spark_cluster, directory) as path:
        yield path


@pytest.fixture(scope="module")
def subscribers(spark_cluster: SparkCluster, project: Path) -> Subscribers:
    return write_sockets(project, spark_cluster)


@pytest.fixture(scope="module")
def ran(
    spark_cluster: SparkCluster, s3: S3, directory: Path, project: Path, subscribers: Subscribers
) -> dict[str, Done]:
    """The results of commands in one application, by their words.

    Before its start a driver is killed, as the application takes all cores.
    """
    bucket = s3.new_bucket()
    write_moved(directory / "moved", spark_cluster, bucket)
    kill_elsewhere(directory / "moved", directory / "elsewhere", bucket)
    worker = spark_cluster.workers["node-b"]
    other, customized = worker.path("other"), worker.path("sitecustomize.py")
    customized.write_text(OTHER_VERSION.replace("FILE", f"{spark_cluster.hidden}/other"))
    losses = Losses(spark_cluster, directory / "losses")
    losses.write_input()
    (directory / "messages").mkdir()
    sender = write_messages(project, directory / "messages", spark_cluster)
    groups, messages, replayed = (
        str(project / f"{name}.yaml") for name in ("groups", "messages", "replayed")
    )
    mended = str(directory / "messages/mended")
    words = [
        deployed_run(directory / "visits", spark_cluster.url),
        *(command.split() for command in COMMANDS),
        ["run", groups, "--until-caught-up"],
        ["status", "--json", groups],
        ["write", str(directory / "numbers/1.json"), json_numbers(300, 400)],
        ["run", groups, "--until-caught-up", "--quiet"],
        ["status", groups, "--json"],
        ["dead", "list", groups, *ALL],
        ["run", messages],
        ["run", messages, "--until-caught-up"],
        ["dead", "list", messages, *ALL],
        ["run", replayed], ["write", mended, ""], ["dead", "replay", replayed],
        ["preview", replayed, "named"],
        ["run", str(project / "sockets.yaml")],
        ["write", str(other), ""],
        ["run", "hidden/rows.yaml", "--fresh"],
    ]  # fmt: skip
    with ThreadPoolExecutor(3) as threads:
        tasks = (losses.suffer, sender.send_all, subscribers.receive_all)
        beside = [threads.submit(task) for task in tasks]
        try:
            done = perform(directory, words, "shared/totals.yaml", storage_variables(bucket))
        finally:
            losses.ended.set()
            sender.ended.set()
            subscribers.ended.set()
            other.unlink(missing_ok=True)
            customized.unlink(missing_ok=True)
        for each in beside:
            each.result()
    return {" ".join(each.args[1:]).replace(f"{project}/", ""): each for each in done}


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


def test_a_shared_state_directory(ran: dict[str, Done], directory: Path) -> None:
    done = ran["run shared/totals.yaml --until-caught-up"]
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(directory / "shared/totals.db")) as database:
        totals = {k: (n, total) for k, n, total in database.execute("SELECT * FROM totals")}
    assert totals == TOTAL_ROWS
    assert f"{BAD} dead letters" in ran["dead list shared/totals.yaml"].stdout
    checkpoint = directory / "shared/state/totals/checkpoints/totals"
    offsets = (checkpoint / "offsets/0").read_text()
    assert '"spark.sql.shuffle.partitions":"2"' in offsets
    assert list(checkpoint.rglob("*.delta")), "executors have written state"
    assert not list(checkpoint.rglob("*.crc")), "Hadoop has written no checksums"


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


def test_executors_log_no_tasks(ran: dict[str, Done], spark_cluster: SparkCluster) -> None:
    """Before the level of the driver applies, an executor logs the task that sets it.

    A task of the first stage sets it, on the executors that have registered by then.
    """
    logs = [
        log.read_text()
        for worker in spark_cluster.workers.values()
        for log in (worker.directory.path / "work").glob("app-*/[01]/stderr")
    ]
    running = " INFO Executor: Running task"
    counts = [text.count(running) for text in logs if " in stage 0.0 " in text]
    assert counts and max(counts) <= 2


def test_losses_in_the_middle_of_batches(ran: dict[str, Done], directory: Path) -> None:
    done = ran["run losses/losses.yaml"]
    assert done.returncode == 0, done.stderr
    _assert_numbers(directory / "losses/out", directory / "losses/totals.db", "totals")
    assert dead_letters_of(ran["dead list losses/losses.yaml --json"]).total() == 3
    assert "code=disk-full" in done.stderr


def test_a_sink_of_files_requires_a_shared_path(ran: dict[str, Done]) -> None:
    done = ran["run refused/rows.yaml"]
    assert done.returncode == 4 and "error[path-not-shared]" in done.stderr
    assert 'sink "out" (type: files)' in done.stderr, done.stderr


def test_executors_share_no_path_with_the_driver(ran: dict[str, Done], directory: Path) -> None:
    """Rows, counts and dead letters are exact although a task kills its executor."""
    for options in ("--until-caught-up", "--until-caught-up --quiet"):
        done = ran[f"run groups.yaml {options}"]
        assert done.returncode == 0, done.stderr
    assert (directory / "killed-groups").exists()
    with closing(sqlite3.connect(directory / "groups.db")) as database:
        rows = {name: tuple(rest) for name, *rest in database.execute("SELECT * FROM groups")}
    assert rows == GROUP_ROWS
    assert sorted(row["n"] for row in rows_of(directory / "groups")) == CHECKED
    assert dead_letters_of(ran[f"dead list groups.yaml {' '.join(ALL)}"]) == GROUP_LETTERS
    counts = _counts(ran["status --json groups.yaml"])
    assert {name: counts[name] for name in GROUP_COUNTS} == GROUP_COUNTS
    assert _counts(ran["status groups.yaml --json"])["pushed"] == (100, 0)


def test_a_killed_driver_continues_on_another_machine(
    ran: dict[str, Done], directory: Path
) -> None:
    done = ran["run moved/moved.yaml --until-caught-up"]
    assert done.returncode == 0, done.stderr
    _assert_numbers(directory / "moved/out", directory / "moved/t.db", "t")
    letters = dead_letters_of(ran["dead list moved/moved.yaml --json"])
    assert {node for node, _, _ in letters} == {"in"} and letters.total() == 3


def test_each_message_is_read_once(ran: dict[str, Done], directory: Path) -> None:
    listed = ran[f"dead list messages.yaml {' '.join(ALL)}"]
    for done in (ran["run messages.yaml"], ran["run messages.yaml --until-caught-up"], listed):
        assert done.returncode == 0, done.stderr
    assert (directory / "messages/killed").exists(), "an executor was killed"
    rows = rows_of(directory / "messages/rows")
    assert sorted(row["n"] for row in rows) == NUMBERS
    letters = dead_letters_of(listed)
    assert letters.total() == len(DAMAGED) and {node for node, _, _ in letters} == {"in"}


def test_rows_of_a_table_that_changes_during_a_run(ran: dict[str, Done], directory: Path) -> None:
    names = {row["n"]: row["name"] for row in rows_of(directory / "messages/rows")}
    assert names == {n: f"{'name' if n < CHANGED else 'changed'}{n % 5}" for n in NUMBERS}


def test_lookups_of_a_replay_and_a_preview(ran: dict[str, Done], directory: Path) -> None:
    first, replayed = ran["run replayed.yaml"], ran["dead replay replayed.yaml"]
    assert first.returncode == replayed.returncode == 0, first.stderr + replayed.stderr
    rows = rows_of(directory / "messages/replayed")
    assert len(rows) == 20 and {row["n"]: row["name"] for row in rows} == {
        row["n"]: f"changed{row['n'] % 5}" for row in rows
    }
    preview = ran["preview replayed.yaml named"]
    assert preview.stderr == ""
    previewed = json.loads(preview.stdout)["named"]
    assert sorted(previewed, key=lambda row: row["n"]) == sorted(rows, key=lambda row: row["n"])


@pytest.mark.parametrize("sink", ["lines", "messages"])
def test_a_sink_that_listens_sends_each_row_once(
    ran: dict[str, Done], subscribers: Subscribers, sink: str
) -> None:
    """The driver sends the rows of tasks on both workers."""
    done = ran["run sockets.yaml"]
    assert done.returncode == 0, done.stderr
    rows = subscribers.received[sink]
    assert sorted(row["n"] for row in rows) == ROWS
    assert {row["host"] for row in rows} == {"node-a", "node-b"}


def test_an_executor_with_another_version(ran: dict[str, Done]) -> None:
    done = ran["run hidden/rows.yaml --fresh"]
    assert done.returncode == 2 and "error[other-versions]" in done.stderr, done.stderr
    assert re.search(r"executor on node-b: Penstock 0\.0\.1; driver on \S+: Penstock", done.stderr)


def _assert_numbers(out: Path, database: Path, table: str) -> None:
    """Compares rows and totals with the numbers below 300 whose lines are not damaged."""
    numbers = [n for n in range(300) if n % 100 != 7]
    assert sorted(row["n"] for row in rows_of(out)) == numbers
    with closing(sqlite3.connect(database)) as connection:
        totals = {k: (n, total) for k, n, total in connection.execute(f"SELECT * FROM {table}")}
    keys = [[n for n in numbers if n % 3 == key] for key in range(3)]
    assert totals == {key: (len(group), sum(group)) for key, group in enumerate(keys)}


def _counts(done: Done) -> dict[str, tuple[int, int]]:
    nodes = json.loads(done.stdout)["numbers"]["nodes"]
    return {name: (node["rows"], node["dead_letters"]) for name, node in nodes.items()}

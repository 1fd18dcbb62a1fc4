"""Wishes and runs survive kills at the worst moments, full disks, upgrades and restored backups."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import stand_in_run
from penstock.core.retry import Backoff
from penstock.runtime.state.directory import StateDirectory
from penstock.server.server import TOKEN_FILE, open_server
from penstock.server.settings import Settings
from penstock.server.store.database import FILE, Database
from penstock.server.store.pipelines import Pipelines
from penstock.server.supervision import supervised
from server_console import STAND_IN, Console, OpenConsole, behave, wait_for

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


def owner(directory: Path, name: str = "shop") -> int | None:
    """Returns the process that holds the lock of a pipeline's state, as soon as it is recorded."""
    state = StateDirectory(directory / name / ".penstock" / name)
    found = state.owner() if state.root.exists() else None
    return int(found["pid"]) if found else None


def started(console: Console) -> int:
    """Returns the process of the last start."""
    pipelines = Pipelines(Database.open(console.server.parts.settings.data))
    found = wait_for(
        lambda: (start := pipelines.open_start(console.id())) and start.pid, lambda: "no start"
    )
    return int(found)


def test_a_stop_before_the_run_has_its_lock(console: Console, pipeline_directory: Path) -> None:
    behave(pipeline_directory, "run 1.2")
    console.post(f"pipelines/{console.id()}/start")
    started(console)
    console.post(f"pipelines/{console.id()}/stop")
    console.await_health("stopped")
    assert owner(pipeline_directory) is None
    (run,) = console.get(f"pipelines/{console.id()}/runs")
    assert run["ending"] == "stopped"


def test_a_run_that_a_user_started(console: Console, pipeline_directory: Path) -> None:
    """It is shown as it is, and a stop in the console ends it."""
    log = pipeline_directory / "log.jsonl"
    words = [*STAND_IN, "run", "shop.yaml", "--log-file", str(log)]
    run = subprocess.Popen(words, cwd=pipeline_directory / "shop")
    console.await_health("running")
    assert console.get(f"pipelines/{console.id()}")["wish"] == "stopped"
    console.post(f"pipelines/{console.id()}/stop")
    assert run.wait(30) == 0
    console.await_health("stopped")


def test_a_run_that_a_user_started_after_a_start_that_hung(
    console: Console, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is not the failure of the earlier start, after which the server starts another."""
    monkeypatch.setattr(supervised, "START_SECONDS", 0.5)
    monkeypatch.setattr(Backoff, "delay", lambda backoff, failures: 3600.0)
    behave(pipeline_directory, "run 3600")
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("retrying")
    behave(pipeline_directory, "lingering")
    words = [*STAND_IN, "run", "shop.yaml", "--log-file", str(pipeline_directory / "log.jsonl")]
    run = subprocess.Popen(words, cwd=pipeline_directory / "shop")
    console.await_health("running")
    (pipeline_directory / "shop" / ".penstock" / "shop" / "stop").touch()
    assert run.wait(30) == 0
    assert console.await_health("stopped")["reason"] is None


def test_a_run_of_tests_that_were_killed(
    console: Console, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends by itself: no run of a stand-in remains on the machine."""
    tests = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setenv(stand_in_run.TESTS, str(tests.pid))
    words = [*STAND_IN, "run", "shop.yaml", "--log-file", str(pipeline_directory / "log.jsonl")]
    run = subprocess.Popen(words, cwd=pipeline_directory / "shop")
    console.await_health("running")
    tests.kill()
    tests.wait()
    assert run.wait(30) == 0
    console.await_health("stopped")


def test_a_start_while_the_run_stops(console: Console, pipeline_directory: Path) -> None:
    behave(pipeline_directory, "lingering")
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    before = owner(pipeline_directory)
    console.post(f"pipelines/{console.id()}/stop")
    console.await_health("stopping")
    behave(pipeline_directory, "run")
    console.post(f"pipelines/{console.id()}/start")
    wait_for(lambda: owner(pipeline_directory) not in (None, before), lambda: str(console.health()))


def test_a_reset_is_not_lost_by_a_kill(console: Console, pipeline_directory: Path) -> None:
    """It is repeated after a kill before the lock, and not after one behind it."""
    behave(pipeline_directory, "run 60")
    console.post(f"pipelines/{console.id()}/start", {"fresh": True})
    pid = started(console)
    behave(pipeline_directory, "run")
    os.kill(pid, signal.SIGKILL)
    resets = pipeline_directory / "shop" / ".penstock" / "shop" / "resets"
    console.await_health("running")
    assert len(resets.read_text().splitlines()) == 1
    wait_for(
        lambda: not Pipelines(Database.open(console.server.parts.settings.data))
        .get(console.id()).fresh,
        lambda: "the reset is still due",
    )  # fmt: skip
    second = owner(pipeline_directory)
    assert second is not None
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: owner(pipeline_directory) not in (None, second), lambda: "no other run")
    assert len(resets.read_text().splitlines()) == 1


def test_a_process_that_the_store_does_not_know(
    open_console: OpenConsole, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was killed between the start of a process and its record."""
    behave(pipeline_directory, "run 2")
    console = open_console()
    with monkeypatch.context() as patch:
        patch.setattr(Pipelines, "set_process", lambda *_: None)
        console.post(f"pipelines/{console.id()}/start")
        wait_for(lambda: console.health()["state"] == "starting", lambda: str(console.health()))
        console.server.supervisor.close()
    console = open_console()
    console.await_health("running")
    assert len(console.get(f"pipelines/{console.id()}/runs")) == 1


def test_a_number_of_another_process(open_console: OpenConsole, server_settings: Settings) -> None:
    """A process that has the number of an ended run is neither adopted nor signalled."""
    other = subprocess.Popen(["sleep", "600"])
    console = open_console()
    pipelines = Pipelines(Database.open(server_settings.data))
    console.server.supervisor.close()
    pipelines.set_wish(console.id(), "running", "ann")
    assert pipelines.begin_start(console.id(), "ended", None, "ann")
    pipelines.set_process("ended", other.pid, "boot:1")
    console = open_console()
    console.await_health("running")
    assert other.poll() is None
    other.kill()
    other.wait()


def test_an_upgrade_leaves_runs_alone(
    open_console: OpenConsole, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = open_console()
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    before = owner(pipeline_directory)
    monkeypatch.setattr("penstock.server.catalog.__version__", "99.0.0")
    console = open_console()
    console.await_health("running")
    assert owner(pipeline_directory) == before
    console.post(f"pipelines/{console.id()}/restart")
    wait_for(lambda: owner(pipeline_directory) not in (before, None), lambda: str(console.health()))
    assert len(console.get(f"pipelines/{console.id()}/versions")) == 1


def test_a_kill_during_the_first_start(server_settings: Settings) -> None:
    """The user exists, and neither the token nor the code were written."""
    from penstock.core.log import Silent

    with open_server(server_settings, Silent()) as first:
        assert first.login_code
    (server_settings.data / TOKEN_FILE).unlink()
    with open_server(server_settings, Silent()) as second:
        assert second.login_code
    assert (server_settings.data / TOKEN_FILE).exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB for the data of the server."""
    disk = tmp_path / ".penstock" / "server"
    disk.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"only root can make a small disk: {error}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.usefixtures("static_checks")
def test_a_full_disk(small_disk: Path, open_console: OpenConsole, pipeline_directory: Path) -> None:
    """Runs continue; requests that need space fail with a reason, and work with space again."""
    console = open_console()
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    before = owner(pipeline_directory)
    filler = small_disk / "filler"
    _fill(filler)
    text = console.get(f"pipelines/{console.id()}")["text"] + "# " + "x" * 100_000
    path = f"/api/v1/pipelines/{console.id()}/apply"
    for _ in range(3):
        answer = console.client.post(path, json={"text": text})
        assert answer.status_code in (409, 503), answer.text
        assert answer.json()["errors"][0]["code"] in (
            "store-full",
            "file-not-written",
            "disk-full",
        )
    assert console.health()["state"] in ("running", "idle")
    assert (pipeline_directory / "shop" / "shop.yaml").read_text() != text
    assert owner(pipeline_directory) == before
    filler.unlink()
    console.post(f"pipelines/{console.id()}/restart")
    wait_for(lambda: owner(pipeline_directory) not in (before, None), lambda: str(console.health()))
    console.await_health("running")


def _fill(path: Path) -> None:
    with path.open("wb") as file:
        size = 65536
        while size:
            try:
                os.write(file.fileno(), b"x" * size)
            except OSError:
                size //= 2


def test_the_page_of_backups(
    open_console: OpenConsole, server_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The program of the page, during a run; then the store is lost and restored."""
    page = (ROOT / "docs" / "howto" / "backup.md").read_text()
    program = re.search(r"```python title=backup.py\n(.*?)```", page, re.DOTALL)
    assert program
    console = open_console()
    directory, data = server_settings.directory, server_settings.data
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    before = owner(directory)
    backup = tmp_path_factory.mktemp("backups") / "backup"
    words = [sys.executable, "-c", program[1], str(directory), str(data), str(backup)]
    subprocess.run(words, check=True, timeout=60)
    copied = backup / "pipelines"
    assert (copied / "shop" / ".penstock" / "shop" / "run.json").exists()
    assert (copied / ".penstock" / "server" / TOKEN_FILE).exists()
    console.server.supervisor.close()
    for path in data.glob("server.db*"):
        path.unlink()
    shutil.copy(backup / FILE, data / FILE)
    console = open_console()
    console.await_health("running")
    assert owner(directory) == before
    (run,) = console.get(f"pipelines/{console.id()}/runs")
    assert (run["author"], run["pipeline_version"]) == ("admin", 1)

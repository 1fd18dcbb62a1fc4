"""Pipelines of a share run in one process, whichever of them, the process or the server ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.runtime.sharing.directory import HostDirectory, Request
from penstock.runtime.state.directory import StateDirectory
from penstock.server.settings import Settings
from penstock.server.store.pipelines import Start
from penstock.server.supervision import supervised
from penstock.server.supervision.run_process import new_run_id
from penstock.server.supervision.shared_runs import Hosts, SharedRun
from penstock.server.supervision.supervised import in_first_batch
from server_console import STAND_IN_HOST, Console, OpenConsole, add_pipeline, behave, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def pipeline_directory(tmp_path: Path) -> Path:
    """A directory with three pipelines, of which two have a share."""
    add_pipeline(tmp_path)
    for name in ("bar", "cafe"):
        add_pipeline(tmp_path, name, share="team")
    return tmp_path


def start(console: Console, *names: str) -> None:
    for name in names:
        console.post(f"pipelines/{console.id(name)}/start")


def process(console: Console, name: str) -> int | None:
    owner = console.get(f"pipelines/{console.id(name)}")["owner"]
    return owner and owner["pid"]


def started(console: Console, *names: str) -> list[int]:
    """Starts pipelines, and returns their processes."""
    start(console, *names)
    return [running(console, name) for name in names]


def running(console: Console, name: str) -> int:
    """Waits until a pipeline runs, and returns its process."""
    console.await_health("running", name=name)
    return int(wait_for(lambda: process(console, name), lambda: f"no process of {name}"))


def test_pipelines_of_a_share_have_one_process(
    open_console: OpenConsole, pipeline_directory: Path, server_settings: Settings
) -> None:
    """It outlives the server and each of its pipelines, and ends with the last one."""
    console = open_console()
    shop, bar, cafe = started(console, "shop", "bar", "cafe")
    assert bar == cafe != shop
    assert console.get(f"pipelines/{console.id('bar')}")["share"] == "team"

    console = open_console()
    assert running(console, "bar") == running(console, "cafe") == cafe

    console.post(f"pipelines/{console.id('bar')}/stop")
    console.await_health("stopped", name="bar")
    assert console.health("cafe")["state"] == "running"
    behave(pipeline_directory, "fail 2", "bar")
    start(console, "bar")
    failed = console.await_health("failed", name="bar")
    assert failed["reason"]["code"] == "made-up"
    assert process(console, "cafe") == cafe
    behave(pipeline_directory, "run", "bar")
    assert started(console, "bar") == [cafe]
    (run, *_) = console.get(f"pipelines/{console.id('bar')}/runs")
    assert run["author"] == "admin"

    for name in ("bar", "cafe"):
        console.post(f"pipelines/{console.id(name)}/stop")
        console.await_health("stopped", name=name)
    hosts = server_settings.share_hosts
    wait_for(lambda: not list(hosts.iterdir()), lambda: "the host remains")


def test_the_end_of_the_process_ends_all_its_pipelines(
    open_console: OpenConsole, pipeline_directory: Path
) -> None:
    """They start again. A pipeline that ends its process twice runs alone afterwards, until a user
    starts it; a restart of the server does not return it.
    """
    console = open_console()
    (cafe,) = started(console, "cafe")
    behave(pipeline_directory, "ending", "bar")
    start(console, "bar")
    wait_for(lambda: process(console, "cafe") not in (None, cafe), lambda: "no other process")
    summary = wait_for(
        lambda: found if (found := console.get(f"pipelines/{console.id('bar')}"))["ejected"]
        else None,
        lambda: f"not ejected: {console.health('bar')}",
    )  # fmt: skip
    assert summary["share"] == "team"
    behave(pipeline_directory, "run", "bar")
    assert running(console, "bar") != running(console, "cafe")
    assert not console.get(f"pipelines/{console.id('cafe')}")["ejected"]
    runs = console.get(f"pipelines/{console.id('cafe')}/runs")
    assert {run["ending"] for run in runs[1:]} == {"killed"}

    console = open_console()
    console.post(f"pipelines/{console.id('bar')}/stop")
    console.await_health("stopped", name="bar")
    assert "runs alone" in console.get(f"pipelines/{console.id('bar')}")["ejected"]
    assert started(console, "bar") == [running(console, "cafe")]
    assert console.get(f"pipelines/{console.id('bar')}")["ejected"] is None


def test_a_start_that_hangs_ends_alone(
    console: Console, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch,
    server_settings: Settings,
) -> None:  # fmt: skip
    """Its host continues with the other pipelines, and ends with the last of them."""
    (cafe,) = started(console, "cafe")
    monkeypatch.setattr(supervised, "START_SECONDS", 1)
    behave(pipeline_directory, "run 3600", "bar")
    start(console, "bar")
    failed = console.await_health("retrying", name="bar")
    monkeypatch.setattr(supervised, "START_SECONDS", 60)
    behave(pipeline_directory, "run", "bar")
    assert failed["reason"]["code"] == "run-not-started"
    assert "locked" in failed["reason"]["message"]
    assert running(console, "cafe") == cafe

    assert running(console, "bar") == cafe
    for name in ("bar", "cafe"):
        console.post(f"pipelines/{console.id(name)}/stop")
        console.await_health("stopped", name=name)
    hosts = server_settings.share_hosts
    wait_for(lambda: not list(hosts.iterdir()), lambda: "the host remains")


def test_a_written_batch_ends_the_count_of_failed_starts(console: Console) -> None:
    """Two starts that failed for reasons of others, days apart, do not eject a pipeline."""
    start(console, "bar")
    running(console, "bar")
    pipelines, id = console.server.parts.views._pipelines, console.id("bar")
    pipelines.add_failed_start(id, pipelines.get(id).wishes)
    wait_for(lambda: pipelines.get(id).failed_starts == 0, lambda: "one failed start remains")


def test_a_new_version_returns_a_pipeline_to_its_share(console: Console) -> None:
    pipelines, id = console.server.parts.views._pipelines, console.id("bar")
    for _ in range(2):
        pipelines.add_failed_start(id, pipelines.get(id).wishes)
    assert pipelines.get(id).ejected
    with pipelines.new_version(id, "", "ann", ""):
        pass
    assert not pipelines.get(id).ejected


@pytest.mark.parametrize(
    ("run", "batches", "batch", "expected"),
    [("r", 0, 7, True), ("r", 0, None, False), ("r", 1, 7, False), ("other", 0, 7, False)],
)
def test_the_first_batch_belongs_to_the_start(
    run: str, batches: int, batch: int | None, expected: bool
) -> None:
    numbers: Any = {"run": run, "batches": batches, "queries": {"q": {"batch": batch}}}
    assert in_first_batch(numbers, "r") is expected
    assert not in_first_batch(None, "r")


@pytest.fixture
def run_in(pipeline_directory: Path) -> Iterator[Callable[..., SharedRun]]:
    """Starts a run of a pipeline in a host of the share `team`, and stops all at the end."""
    begun: list[tuple[str, SharedRun]] = []

    def run_in(hosts: Hosts, name: str) -> SharedRun:
        directory = pipeline_directory / name
        request = Request(new_run_id(), str(directory / f"{name}.yaml"), str(directory / "log"))
        begun.append((name, hosts.start("team", request)))
        return begun[-1][1]

    yield run_in
    for name, run in begun:
        wait_for(lambda run=run, name=name: not run.alive or stop(pipeline_directory, name),
                 lambda name=name: f"{name} runs")  # fmt: skip


def stop(directory: Path, name: str) -> None:
    """Requests the stop of a run that has locked its state."""
    state = StateDirectory(directory / name / ".penstock" / name)
    if state.owner() is not None:
        (state.root / "stop").touch()


@pytest.fixture
def make_hosts(tmp_path: Path) -> Callable[..., Hosts]:
    def make(**environment: str) -> Hosts:
        return Hosts(
            tmp_path / "hosts", STAND_IN_HOST, {**os.environ, **environment}, tmp_path / "logs"
        )

    return make


def test_a_process_with_another_environment_is_not_joined(
    make_hosts: Callable[..., Hosts], run_in: Callable[..., SharedRun]
) -> None:
    """The environment has the confinement of paths and of Python."""
    confined = make_hosts(PENSTOCK_NO_PYTHON="1")
    bar, cafe = run_in(make_hosts(), "bar"), run_in(confined, "cafe")
    assert bar.pid != cafe.pid
    assert run_in(make_hosts(PENSTOCK_NO_PYTHON="1"), "shop").pid == cafe.pid


def test_a_process_that_has_ended_is_not_joined(
    make_hosts: Callable[..., Hosts], run_in: Callable[..., SharedRun], tmp_path: Path
) -> None:
    """A child of the process may keep its pipe open."""
    hosts, host = make_hosts(), HostDirectory(tmp_path / "hosts" / "0")
    pipe = host.create()
    key = hosts._key(host)
    host.write_facts(share="team", pid=os.getpid(), identity="another", key=key)
    assert run_in(hosts, "bar").pid != os.getpid()
    os.close(pipe)


def test_a_changed_module_is_loaded_in_another_process(
    make_hosts: Callable[..., Hosts], run_in: Callable[..., SharedRun], pipeline_directory: Path
) -> None:
    hosts, module = make_hosts(), pipeline_directory / "bar" / "prices.py"
    module.write_text("x = 1")
    bar, cafe = run_in(hosts, "bar"), run_in(hosts, "cafe")
    wait_for(lambda: not bar.alive or stop(pipeline_directory, "bar"), lambda: "bar runs")
    assert bar.exit_code == 0 and not bar.host_ended
    module.write_text("x = 2")
    other = run_in(hosts, "bar")
    assert other.pid == cafe.pid
    wait_for(lambda: not other.alive, lambda: "bar runs")
    assert other.needs_new_host and not other.host_ended
    assert run_in(hosts, "bar").pid != cafe.pid


def test_runs_of_an_earlier_server(
    make_hosts: Callable[..., Hosts], run_in: Callable[..., SharedRun], tmp_path: Path
) -> None:
    """They are found by their requests, also after the end of their process."""
    bar = run_in(make_hosts(), "bar")
    hosts = make_hosts()
    start = Start(bar.run, "p", 1, "", "ann", None, None)
    found = hosts.find(start)
    assert found is not None and found.alive and found.pid == bar.pid
    found.kill()
    wait_for(lambda: not bar.alive, lambda: "the host runs")
    found = hosts.find(start)
    assert found is not None and not found.alive
    assert found.host_ended and found.exit_code is None
    hosts.remove_ended()
    assert hosts.find(start) is not None
    found.forget()
    assert hosts.find(start) is None
    assert not list((tmp_path / "hosts").iterdir())

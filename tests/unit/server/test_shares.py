"""Pipelines of a share run in one process, whichever of them, the process or the server ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from penstock.runtime.sharing.directory import HostDirectory
from penstock.server.settings import Settings
from penstock.server.store.pipelines import Pipelines
from server_console import Console, OpenConsole, add_pipeline, behave, wait_for

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


def hosts(settings: Settings) -> list[HostDirectory]:
    return [HostDirectory(root) for root in settings.share_hosts.glob("*/")]


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
    (another,) = started(console, "cafe")
    assert another != cafe
    assert len(hosts(server_settings)) == 1


def test_the_end_of_the_process_ends_all_its_pipelines(
    console: Console, pipeline_directory: Path
) -> None:
    """They start again. A pipeline that ends its process twice runs alone afterwards."""
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

    console.post(f"pipelines/{console.id('bar')}/stop")
    console.await_health("stopped", name="bar")
    assert started(console, "bar") == [process(console, "cafe")]
    assert not console.get(f"pipelines/{console.id('bar')}")["ejected"]


def test_a_process_of_other_settings_is_not_joined(
    open_console: OpenConsole, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another environment of the server, such as --no-python, or with other modules."""
    (pipeline_directory / "bar" / "prices.py").write_text("x = 1")
    console = open_console()
    (bar,) = started(console, "bar")
    console.server.supervisor.close()
    monkeypatch.setenv("PENSTOCK_CACHE", str(pipeline_directory / "cache"))
    console = open_console()
    (cafe,) = started(console, "cafe")
    assert process(console, "bar") == bar != cafe
    for name in ("bar", "cafe"):
        console.post(f"pipelines/{console.id(name)}/stop")
        console.await_health("stopped", name=name)

    assert len({*started(console, "bar", "cafe")}) == 1
    first = process(console, "cafe")
    console.post(f"pipelines/{console.id('bar')}/stop")
    console.await_health("stopped", name="bar")
    (pipeline_directory / "bar" / "prices.py").write_text("x = 2")
    (second,) = started(console, "bar")
    assert process(console, "cafe") == first != second


def test_a_run_that_the_store_does_not_know(
    open_console: OpenConsole, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was killed between the request and its record, and then the process."""
    behave(pipeline_directory, "run 1", "bar")
    console = open_console()
    with monkeypatch.context() as patch:
        patch.setattr(Pipelines, "set_process", lambda *_: None)
        start(console, "bar")
        wait_for(
            lambda: console.health("bar")["state"] == "starting",
            lambda: str(console.health("bar")),
        )
        console.server.supervisor.close()
    console = open_console()
    host = running(console, "bar")
    assert len(console.get(f"pipelines/{console.id('bar')}/runs")) == 1
    console.server.supervisor.close()
    os.kill(host, signal.SIGKILL)
    console = open_console()
    wait_for(lambda: process(console, "bar") not in (None, host), lambda: "no other process")

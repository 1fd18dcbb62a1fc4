"""Runs are as users wish, whatever ends: the run, the server, or both."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from penstock.core.process_identity import process_identity
from penstock.server.store.pipelines import Start
from penstock.server.supervision.restart_policy import CRASH_LOOP_FAILURES, Failures
from penstock.server.supervision.run_process import RunProcess
from server_console import PIPELINE, Console, OpenConsole, add_pipeline, behave, wait_for

pytestmark = pytest.mark.slow


def owner(console: Console, name: str = "shop") -> int | None:
    found = console.get(f"pipelines/{console.id(name)}")["owner"]
    return found and int(found["pid"])


def test_a_run_starts_and_stops(console: Console) -> None:
    assert console.health()["reason"]["code"] == "never-run"
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    console.post(f"pipelines/{console.id()}/stop")
    stopped = console.await_health("stopped")
    assert stopped["reason"]["message"] == "stopped by admin"
    (run,) = console.get(f"pipelines/{console.id()}/runs")
    assert (run["ending"], run["author"], run["pipeline_version"]) == ("stopped", "admin", 1)


def test_a_complete_run_is_not_started_again(console: Console, pipeline_directory: Path) -> None:
    behave(pipeline_directory, "complete")
    console.post(f"pipelines/{console.id()}/start")
    wait_for(
        lambda: console.get(f"pipelines/{console.id()}")["wish"] == "stopped",
        lambda: "the wish remains",
    )
    assert len(console.get(f"pipelines/{console.id()}/runs")) == 1


def test_failed_runs_are_started_again(console: Console, pipeline_directory: Path) -> None:
    codes = {"killed": "killed", "fail 3": "made-up", "refuse 1": "state"}
    names = {behavior: f"shop{number}" for number, behavior in enumerate(codes)}
    for behavior, name in names.items():
        add_pipeline(pipeline_directory, name, behavior)
    wait_for(lambda: len(console.get("pipelines")) == 4, lambda: "pipelines are missing")
    for name in names.values():
        console.post(f"pipelines/{console.id(name)}/start")
    for behavior, name in names.items():
        health = console.await_health("retrying", name=name)
        assert health["reason"]["code"] == codes[behavior]
        assert health["next_attempt"]
        behave(pipeline_directory, "run", name)
    for name in names.values():
        console.await_health("running", name=name)
        assert console.get(f"pipelines/{console.id(name)}/runs")[0]["author"] == "server"


def test_errors_of_files_and_state_end_the_restarts(
    open_console: OpenConsole, pipeline_directory: Path
) -> None:
    add_pipeline(pipeline_directory, "cafe", "refuse 2")
    behave(pipeline_directory, "fail 4")
    console = open_console()
    names = ("shop", "cafe")
    for name in names:
        console.post(f"pipelines/{console.id(name)}/start")
    failed = {name: console.await_health("failed", name=name) for name in names}
    for name in names:
        behave(pipeline_directory, "run", name)
    console = open_console()
    assert {name: console.health(name) for name in names} == failed


def test_a_file_with_errors_is_no_healthy_pipeline(
    open_console: OpenConsole, pipeline_directory: Path
) -> None:
    add_pipeline(pipeline_directory, "cafe")
    console = open_console()
    shop, cafe = console.id(), console.id("cafe")
    console.post(f"pipelines/{shop}/start")
    console.post(f"pipelines/{cafe}/start")
    console.await_health("running", name="cafe")
    console.post(f"pipelines/{cafe}/stop")
    console.await_health("stopped", name="cafe")
    console.await_health("running")
    before = owner(console)
    for name in ("cafe", "shop"):
        file = pipeline_directory / name / f"{name}.yaml"
        file.write_text(file.read_text().replace("format: json", "format: jsom"))
    health = console.await_health("unknown", name="cafe")
    assert health["reason"]["hint"] == 'did you mean "json"?'
    assert [each["name"] for each in console.get("pipelines")] == ["cafe", "shop"]
    for path in (f"{cafe}/start", f"{cafe}/restart", f"{shop}/restart"):
        found = console.post(f"pipelines/{path}", status=422)["errors"]
        assert [each["code"] for each in found] == ["unknown-type"]
    assert owner(console) == before
    assert console.health()["state"] in ("running", "idle")


def test_five_failures_are_a_crash_loop() -> None:
    failures = Failures()
    for number in range(CRASH_LOOP_FAILURES - 1):
        failures.add(100.0 + number, None)
        assert not failures.crash_looping
        assert failures.next_start > 100.0 + number
    failures.add(110.0, 3)
    assert failures.crash_looping
    spread = Failures()
    for number in range(20):
        spread.add(1000.0 * number, None)
    assert not spread.crash_looping


def test_runs_go_on_without_the_server(open_console: OpenConsole) -> None:
    console = open_console()
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    before = owner(console)
    console = open_console()
    console.await_health("running")
    assert owner(console) == before
    assert len(console.get(f"pipelines/{console.id()}/runs")) == 1


def test_a_run_that_ended_without_the_server_is_started_again(open_console: OpenConsole) -> None:
    console = open_console()
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    pid = owner(console)
    assert pid is not None
    console.server.supervisor.close()
    os.kill(pid, signal.SIGKILL)
    console = open_console()
    console.await_health("running")
    assert owner(console) != pid


def test_a_restart_is_another_run(console: Console) -> None:
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    before = owner(console)
    console.post(f"pipelines/{console.id()}/restart")
    wait_for(
        lambda: console.health()["state"] == "running" and owner(console) not in (before, None),
        lambda: f"{console.health()} {owner(console)}",
    )
    runs = console.get(f"pipelines/{console.id()}/runs")
    assert [run["ending"] for run in runs] == [None, "stopped"]


def test_processes_of_the_same_number_differ() -> None:
    identity = process_identity(os.getpid())
    assert identity == process_identity(os.getpid())
    same = RunProcess.of(Start("r", "p", 1, "", "ann", os.getpid(), identity))
    other = RunProcess.of(Start("r", "p", 1, "", "ann", os.getpid(), "boot:1"))
    assert (same.alive, other.alive) == (True, False)
    other.kill()


def test_new_and_removed_files(console: Console, pipeline_directory: Path) -> None:
    (pipeline_directory / "more.yaml").write_text(PIPELINE.format(name="more"))
    (pipeline_directory / "docker-compose.yaml").write_text("services: {}")
    (pipeline_directory / "broken.yaml").write_text("sources:\n  a: {type: filez}\nsinks: {}\n")
    wait_for(lambda: len(console.get("pipelines")) == 3, lambda: str(console.get("pipelines")))
    wait_for(lambda: console.health("broken")["reason"], lambda: str(console.health("broken")))
    broken = console.health("broken")
    assert (broken["state"], broken["reason"]["code"]) == ("unknown", "no-sinks")
    (pipeline_directory / "more.yaml").unlink()
    gone = console.await_health("unknown", name="more")
    assert gone["reason"]["code"] == "missing-file"

"""Requests to stop a run: the first one finishes the batch, a second one stops at once."""

from __future__ import annotations

from pathlib import Path

from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import StopRequest


def test_a_second_request_stops_at_once() -> None:
    stop = StopRequest(None)
    assert not stop.requested.is_set()
    stop.request("SIGTERM")
    assert stop.requested.is_set() and not stop.immediate.is_set()
    stop.request("Ctrl-C")
    assert stop.immediate.is_set() and stop.reason == "SIGTERM"


def test_a_request_of_another_process_is_taken_once(tmp_path: Path) -> None:
    stop = StopRequest(StateDirectory(tmp_path))
    stop.poll()
    assert not stop.requested.is_set()
    (tmp_path / "stop").touch()
    stop.poll()
    assert stop.requested.is_set() and not (tmp_path / "stop").exists()
    stop.poll()
    assert not stop.immediate.is_set()


def test_a_part_of_a_run_ends_alone_or_with_the_run() -> None:
    run = StopRequest(None)
    first, second = run.of_part(), run.of_part()
    first.requested.set()
    assert not run.requested.is_set() and not second.requested.is_set()
    second.request("Ctrl-C")
    assert run.requested.is_set() and first.reason == run.reason == "Ctrl-C"
    run.request("Ctrl-C")
    assert second.immediate.is_set()

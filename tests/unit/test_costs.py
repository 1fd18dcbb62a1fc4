"""The measurement of the costs of tests."""

from __future__ import annotations

import sys
import threading
import time

import pytest

import costs


@pytest.mark.slow
def test_costs_are_measured_after_modules_were_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "SECONDS_BETWEEN_SAMPLES", 0.01)
    measured = costs.Costs(by_file=False, distributes=True)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "psutil")
        time.sleep(0.2)
    area = measured.areas[costs.OUTSIDE]
    before, deadline = area["wall"], time.monotonic() + 60
    while area["wall"] == before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    measured._ended.set()


@pytest.mark.slow
def test_threads_have_costs_of_their_own() -> None:
    usage = costs.Usage(descendants=False)

    def compute() -> None:
        end = time.thread_time() + 0.2
        while time.thread_time() < end:
            pass

    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    used = usage.since_last()
    assert used["threads"] > 0.1 > used["tests"]

"""Retry of transient failures: attempts, backoff and stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import (
    Bug,
    ConnectError,
    PenstockError,
    Permanent,
    RecordError,
    StateError,
    Transient,
    UserError,
)  # fmt: skip
from penstock.core.log import Silent
from penstock.runtime.outcome import Outcome
from penstock.runtime.retry import RetryState, restart_policy, retry
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.stop import StopRequest
from penstock.spec.runtime_models import Restart

GONE = Transient("could not reach the server")


class Noted(Silent):
    """Keeps warnings."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.warnings.append((event, facts))


@pytest.fixture
def policy() -> Restart:
    return Restart.model_validate({"attempts": 3, "backoff": "1ms", "max_backoff": "2ms"})


def failing(times: int, error: PenstockError = GONE) -> tuple[Callable[[], str], list[int]]:
    """A function that fails so many times and then succeeds, and its calls."""
    calls: list[int] = []

    def call() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise error
        return "done"

    return call, calls


def test_failures_without_progress_have_an_end(policy: Restart) -> None:
    log = Noted()
    tries = RetryState(policy, log)
    results = [tries.next_attempt(GONE, 7, query="q") for _ in range(4)]
    assert all(due is not None for due in results[:3])
    assert results[3] is None
    assert [facts["attempt"] for _, facts in log.warnings] == ["1 of 3", "2 of 3", "3 of 3"]
    assert log.warnings[0][1]["query"] == "q"


def test_progress_starts_the_count_again(policy: Restart) -> None:
    tries = RetryState(policy, Silent())
    for batch in (None, 0, 1, 2):
        results = [tries.next_attempt(GONE, batch) for _ in range(4)]
        assert [due is None for due in results] == [False, False, False, True]


def test_a_retry_is_due_after_the_pause(policy: Restart) -> None:
    long = policy.model_copy(update={"backoff": 10.0, "max_backoff": 10.0})
    due = RetryState(long, Silent()).next_attempt(GONE, 0)
    assert due is not None
    assert 8 <= due - time.monotonic() <= 12


@pytest.mark.parametrize("kind", [Permanent, UserError, StateError, RecordError, Bug, ConnectError])
def test_only_transient_errors_are_retried(policy: Restart, kind: type[PenstockError]) -> None:
    error = kind("wrong")
    assert RetryState(policy, Silent()).next_attempt(error, 0) is None
    call, calls = failing(1, error)
    with pytest.raises(kind):
        retry(call, policy, Silent(), StopRequest(None))
    assert len(calls) == 1


def test_no_attempts_mean_no_retry() -> None:
    assert RetryState(Restart(attempts=0), Silent()).next_attempt(GONE, 0) is None


def test_restarts_have_a_backoff_of_their_own() -> None:
    policy = Restart()
    assert (policy.attempts, policy.backoff, policy.max_backoff) == (None, 1.0, 60.0)
    assert len({policy.delay(1) for _ in range(10)}) > 1


@pytest.mark.slow
def test_a_run_without_an_end_has_no_last_attempt() -> None:
    policy = restart_policy(Restart(), endless=True)
    log = Noted()
    retries = RetryState(policy, log)
    assert all(retries.next_attempt(GONE, 7) is not None for _ in range(1000))
    assert log.warnings[-1][1]["attempt"] == "1000"
    quick = policy.model_copy(update={"backoff": 0.0001, "max_backoff": 0.0001})
    call, calls = failing(50)
    assert retry(call, quick, Silent(), StopRequest(None)) == "done"
    assert len(calls) == 51


def test_a_run_that_ends_has_a_last_attempt() -> None:
    policy = restart_policy(Restart(), endless=False)
    retries = RetryState(policy, Silent())
    results = [retries.next_attempt(GONE, 7) for _ in range(policy.attempts or 0)]
    assert len(results) == 8 and None not in results
    assert retries.next_attempt(GONE, 7) is None
    seconds = sum(min(2.0**n, 60) for n in range(8))
    assert seconds > 120, "an outage of a minute must not end a run"


@pytest.mark.parametrize("endless", [True, False])
def test_a_maximum_of_attempts_holds_for_all_runs(endless: bool) -> None:
    assert restart_policy(Restart(attempts=3), endless=endless).attempts == 3


def test_failures_outside_the_window_do_not_count(
    policy: Restart, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    retries = RetryState(policy.model_copy(update={"window": 60.0}), Silent())
    for _ in range(10):
        assert retries.next_attempt(GONE, 7) is not None
        clock[0] += 21
    clock[0] -= 20
    assert retries.next_attempt(GONE, 7) is None


def test_a_call_is_tried_until_it_succeeds(policy: Restart) -> None:
    log = Noted()
    call, calls = failing(3)
    assert retry(call, policy, log, StopRequest(None)) == "done"
    assert (len(calls), len(log.warnings)) == (4, 3)


def test_a_call_that_never_succeeds_raises_its_error(policy: Restart) -> None:
    call, calls = failing(9)
    with pytest.raises(Transient, match="could not reach the server"):
        retry(call, policy, Silent(), StopRequest(None))
    assert len(calls) == 4


def test_a_request_to_stop_ends_the_pause(policy: Restart, tmp_path: Path) -> None:
    """The request is left in the state directory while the call fails."""
    state = StateDirectory(tmp_path)
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        (tmp_path / "stop").touch()
        raise GONE

    long = policy.model_copy(update={"backoff": 3600.0, "max_backoff": 3600.0})
    with pytest.raises(Transient, match="could not reach the server"):
        retry(call, long, Silent(), StopRequest(state))
    assert len(calls) == 2


def test_the_exit_code_is_that_of_the_gravest_error() -> None:
    assert Outcome("complete").exit_code == 0
    assert Outcome("failed", {"a": Permanent("x")}).exit_code == 3
    errors = {"a": UserError("x"), "b": StateError("x"), "c": Transient("x")}
    assert Outcome("failed", errors).exit_code == 4

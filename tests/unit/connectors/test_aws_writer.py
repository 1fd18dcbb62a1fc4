"""Batch requests of AWS: their limits, and the outcome of each entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from penstock.connectors.aws.writer import BatchWriter, Outcome, Retryable
from penstock.sdk import Permanent, Rejected, Retry, Transient

QUICK = Retry.model_validate({"attempts": 3, "backoff": "1ms", "max_backoff": "1ms"})


class Writer(BatchWriter[str]):
    """A writer of texts, whose outcomes a function returns."""

    max_records, max_size = 3, 10
    service = "Test"

    def __init__(self, outcome: Callable[[str], Outcome]) -> None:
        super().__init__(QUICK)
        self._outcome = outcome
        self.requests: list[list[str]] = []

    def messages(self, rows: Any, payloads: Any) -> list[str | Rejected]:
        return []

    def size(self, entry: str) -> int:
        return len(entry)

    def put(self, entries: Sequence[str]) -> Sequence[Outcome]:
        self.requests.append([*entries])
        return [self._outcome(entry) for entry in entries]


def rejected_indexes(results: Sequence[Rejected | None]) -> list[int]:
    return [index for index, result in enumerate(results) if result is not None]


def test_requests_within_the_limits() -> None:
    writer = Writer(lambda entry: None)
    assert writer.send(["a", "b", "c", "d", "x" * 9, "yy", "z" * 20, "e"]) == [None] * 8
    assert writer.requests == [
        ["a", "b", "c"], ["d", "x" * 9], ["yy"], ["z" * 20], ["e"],
    ]  # fmt: skip


def test_only_failed_entries_are_sent_again() -> None:
    failures = {"b": 2}

    def outcome(entry: str) -> Outcome:
        if failures.get(entry, 0):
            failures[entry] -= 1
            return Retryable("throttled")
        return Rejected("bad") if entry == "c" else None

    writer = Writer(outcome)
    assert rejected_indexes(writer.send(["a", "b", "c", "d"])) == [2]
    assert writer.requests == [["a", "b", "c"], ["b"], ["b"], ["d"]]


def test_the_last_attempt_raises_the_error() -> None:
    writer = Writer(lambda entry: Retryable("throttled"))
    with pytest.raises(Transient, match="could not write 2 of the records to Test: throttled"):
        writer.send(["a", "b"])
    assert len(writer.requests) == QUICK.attempts


def test_the_entry_that_rejects_a_request_is_found() -> None:
    def outcome(entry: str) -> Outcome:
        if entry == "bad":
            raise Permanent("rejected", code="rejected")
        return None

    writer = Writer(outcome)
    assert rejected_indexes(writer.send(["a", "bad", "b", "c"])) == [1]
    assert writer.requests[-1] == ["c"]


def test_another_error_ends_the_write() -> None:
    def outcome(entry: str) -> Outcome:
        raise Permanent("no such queue", code="unknown-queue")

    with pytest.raises(Permanent, match="no such queue"):
        Writer(outcome).send(["a", "b"])

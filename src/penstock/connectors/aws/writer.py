"""Batch writer: batch requests whose response reports success or failure of each entry."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from penstock.sdk import Permanent, Rejected, Retry, Transient, report_retry
from penstock.sdk.messages.acknowledged_writer import AcknowledgedWriter

E = TypeVar("E")


class Retryable(NamedTuple):
    """The failure of an entry that may be sent again."""

    reason: str


Outcome = Rejected | Retryable | None
"""The outcome of an entry; None is success."""


class BatchWriter(AcknowledgedWriter[E]):
    """Sends entries in batch requests and sends failed entries again with backoff.

    A request that is rejected as a whole is split until the rejected entry is found.
    """

    max_records: ClassVar[int]
    """The largest number of entries of a request."""
    max_size: ClassVar[int]
    """The largest number of bytes of a request."""
    service: ClassVar[str]

    def __init__(self, retry: Retry) -> None:
        self._retry = retry

    @abstractmethod
    def size(self, entry: E) -> int:
        """Returns the bytes of an entry."""

    @abstractmethod
    def put(self, entries: Sequence[E]) -> Sequence[Outcome]:
        """Sends one request. Returns the outcome of each entry; raises Transient or Permanent."""

    def send(self, messages: Sequence[E]) -> Sequence[Rejected | None]:
        rejected: dict[int, Rejected] = {}
        for request in self._requests(messages):
            rejected |= self._send(request)
        return [rejected.get(index) for index in range(len(messages))]

    def _requests(self, entries: Iterable[E]) -> Iterator[list[tuple[int, E]]]:
        request: list[tuple[int, E]] = []
        total = 0
        for index, entry in enumerate(entries):
            size = self.size(entry)
            if request and (len(request) == self.max_records or total + size > self.max_size):
                yield request
                request, total = [], 0
            request.append((index, entry))
            total += size
        if request:
            yield request

    def _send(self, request: Sequence[tuple[int, E]]) -> dict[int, Rejected]:
        """Returns the rejected entries by index once all other entries are written."""
        rejected: dict[int, Rejected] = {}
        failures = 0
        while request:
            try:
                outcomes = self.put([entry for _, entry in request])
            except Permanent as error:
                if error.code != "rejected":
                    raise
                if len(request) == 1:
                    return {**rejected, request[0][0]: Rejected(error.message, code="rejected")}
                half = len(request) // 2
                return {**rejected, **self._send(request[:half]), **self._send(request[half:])}
            retries: list[tuple[int, E]] = []
            reason = ""
            for (index, entry), outcome in zip(request, outcomes, strict=True):
                if isinstance(outcome, Rejected):
                    rejected[index] = outcome
                elif outcome is not None:
                    retries.append((index, entry))
                    reason = outcome.reason
            request = retries
            if request:
                failures += 1
                self._back_off(failures, len(request), reason)
        return rejected

    def _back_off(self, failures: int, count: int, reason: str) -> None:
        error = Transient(
            f"could not write {count} of the records to {self.service}: {reason}",
            code="busy",
            hint="Check the quotas of the service. Set retry.attempts to retry longer.",
        )
        if failures >= self._retry.attempts:
            raise error
        report_retry(error)
        time.sleep(self._retry.delay(failures))

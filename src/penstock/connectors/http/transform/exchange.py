"""Requests of the HTTP transform, and their responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.connectors.http.client import HttpClient, Request, Response
from penstock.connectors.http.framing import join_body
from penstock.connectors.http.targets import RowGroup, Target, group_rows
from penstock.connectors.http.transform.config import HttpTransformConfig
from penstock.sdk import Permanent, RecordError, Rejected, Transient

_AT_ONCE = 8
"""The requests that are sent together, for each parallel one. It limits the responses in memory."""


@dataclass
class Exchange:
    """The requests of the rows of a batch. `errors` are those of rows, by index."""

    config: HttpTransformConfig
    client: HttpClient
    targets: Mapping[int, Target]
    messages: Mapping[int, bytes]
    errors: dict[int, RecordError] = field(default_factory=dict)

    def responses(self) -> Iterator[tuple[RowGroup, Response]]:
        """Yields the successful responses, in the order of rows, and collects errors.

        The rows of a rejected request with several rows are sent again one by one. Raises Transient
        or Permanent for an error that is not one of rows.
        """
        groups = self._groups()
        size = self.config.concurrency * _AT_ONCE
        for start in range(0, len(groups), size):
            answered: list[tuple[RowGroup, Response]] = []
            rejected = self._send(groups[start : start + size], answered)
            for begin in range(0, len(rejected), size):
                self._send(rejected[begin : begin + size], answered)
            yield from sorted(answered, key=lambda each: each[0])

    def _groups(self) -> list[RowGroup]:
        """Returns the rows of each request."""
        targets = {index: self.targets[index] for index in sorted(self.messages)}
        if self.config.framing == "single":
            return [(index,) for index in targets]
        size = self.config.max_records
        groups = [
            group[start : start + size]
            for group in group_rows(targets)
            for start in range(0, len(group), size)
        ]
        return sorted(groups)

    def _send(
        self, groups: Sequence[RowGroup], answered: list[tuple[RowGroup, Response]]
    ) -> list[RowGroup]:
        """Sends requests, and adds successful responses. Returns single rows to send again."""
        rejected: list[RowGroup] = []
        requests = [self._request(group) for group in groups]
        outcomes = self.client.try_send(requests, self.config.max_message_size)
        for group, request, outcome in zip(groups, requests, outcomes, strict=True):
            if isinstance(outcome, Response) and self.config.is_success(outcome.status):
                answered.append((group, outcome))
                continue
            error = self._row_error(request, outcome)
            is_rejected = isinstance(outcome, Response)
            if is_rejected and len(group) > 1:
                rejected += [(index,) for index in group]
            else:
                self.errors |= dict.fromkeys(group, error)
        return rejected

    def _request(self, group: RowGroup) -> Request:
        target, config = self.targets[group[0]], self.config
        if config.method in ("GET", "DELETE"):
            return Request(config.method, target.url, target.headers)
        body = join_body([self.messages[index] for index in group], config.framing)
        return Request(config.method, target.url, target.headers, body)

    def _row_error(
        self, request: Request, outcome: Response | Transient | Permanent
    ) -> RecordError:
        """Returns the error of the rows of a request. Raises an error that is not one of rows."""
        if isinstance(outcome, Response):
            if not self.config.is_rejection(outcome.status):
                raise outcome.error(request.url, self.config.retry)
            text = f"{outcome.status}: {outcome.text}".removesuffix(": ")
            return Rejected(text, code=f"http-{outcome.status}")
        is_used_up = isinstance(outcome, Transient) and self.config.after_retries == "dead_letter"
        if is_used_up or outcome.code == "too-large":
            return Rejected(outcome.message, code=outcome.code)
        raise outcome

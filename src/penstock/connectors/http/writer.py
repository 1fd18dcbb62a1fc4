"""Writer of the HTTP sink: rows as requests, rejected rows as failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.http.client import HttpClient, Request
from penstock.connectors.http.config import HttpSinkConfig
from penstock.connectors.http.framing import CONTENT_TYPES, join_body
from penstock.connectors.http.request_lines import UrlTemplate, render_headers
from penstock.sdk import Failure, Receipt, Rejected, Writer

RowGroup = tuple[int, ...]
"""Indexes of the rows that share a request."""


class Target(NamedTuple):
    """The URL and the headers of the request of a row."""

    url: str
    headers: Mapping[str, str]


class HttpWriter(Writer):
    """Sends all requests of a call before `write` returns, and none for rows without a target."""

    def __init__(self, client: HttpClient, config: HttpSinkConfig) -> None:
        self._client, self._config = client, config
        self._url = UrlTemplate(config.url)
        self._requests = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        targets, failures = self._targets(rows)
        bodies = payloads.to_pylist()
        if self._config.framing == "single":
            groups: list[RowGroup] = [(index,) for index in targets]
        else:
            groups = _group_rows(targets)
        rejections = self._send(groups, targets, bodies)
        single = [rejection for rejection in rejections if len(rejection[0]) == 1]
        retried = [(index,) for group, _ in rejections if len(group) > 1 for index in group]
        single += self._send(retried, targets, bodies)
        failures += [Failure(index, error) for (index,), error in single]
        return sorted(failures, key=lambda failure: failure.index)

    def commit(self) -> Receipt:
        return {"requests": self._requests}

    def _send(
        self,
        groups: Sequence[RowGroup],
        targets: Mapping[int, Target],
        bodies: Sequence[bytes],
    ) -> list[tuple[RowGroup, Rejected]]:
        """Sends one request for each group and returns the groups that the server rejects."""
        config = self._config
        without_body = config.method in ("GET", "DELETE")
        requests = [
            Request(
                config.method, targets[group[0]].url, targets[group[0]].headers,
                None if without_body
                else join_body([bodies[index] for index in group], config.framing),
            )
            for group in groups
        ]  # fmt: skip
        self._requests += len(requests)
        rejections = []
        responses = self._client.send(requests)
        for group, request, response in zip(groups, requests, responses, strict=True):
            if config.is_success(response.status):
                continue
            if not config.is_rejection(response.status):
                raise response.error(request.url, config.retry)
            text = f"{response.status}: {response.text}".removesuffix(": ")
            rejections.append((group, Rejected(text, code=f"http-{response.status}")))
        return rejections

    def _targets(self, rows: pa.RecordBatch) -> tuple[dict[int, Target], list[Failure]]:
        """Returns the targets of rows by index, and the failures of rows without a valid one."""
        targets: dict[int, Target] = {}
        failures: list[Failure] = []
        urls = self._url.render(rows)
        for index, (url, headers) in enumerate(zip(urls, self._headers(rows), strict=True)):
            if isinstance(url, Rejected):
                failures.append(Failure(index, url))
            elif isinstance(headers, Rejected):
                failures.append(Failure(index, headers))
            else:
                targets[index] = Target(url, headers)
        return targets, failures

    def _headers(self, rows: pa.RecordBatch) -> Iterator[dict[str, str] | Rejected]:
        content_type = {"Content-Type": CONTENT_TYPES[self._config.framing]}
        for headers in render_headers(self._config.headers, rows):
            yield headers if isinstance(headers, Rejected) else {**content_type, **headers}


def _group_rows(targets: Mapping[int, Target]) -> list[RowGroup]:
    """Groups rows with the same URL and headers, in order."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for index, target in targets.items():
        groups[target.url, *target.headers.items()].append(index)
    return [tuple(group) for group in groups.values()]

"""Writer of the HTTP sink: rows as requests, rejected rows as failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.http.client import HttpClient, Request
from penstock.connectors.http.config import HttpSinkConfig
from penstock.connectors.http.framing import join_body
from penstock.connectors.http.request_lines import UrlTemplate
from penstock.connectors.http.targets import RowGroup, Target, find_targets, group_rows
from penstock.sdk import Failure, Receipt, Rejected, Writer


class HttpWriter(Writer):
    """Sends all requests of a call before `write` returns, and none for rows without a target."""

    def __init__(self, client: HttpClient, config: HttpSinkConfig) -> None:
        self._client, self._config = client, config
        self._url = UrlTemplate(config.url)
        self._requests = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        targets, failures = find_targets(self._config, self._url, rows)
        bodies = payloads.to_pylist()
        if self._config.framing == "single":
            groups: list[RowGroup] = [(index,) for index in targets]
        else:
            groups = group_rows(targets)
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

"""Requests that are sent, several at once, and what comes of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from penstock.connectors.http.asking import Answer, Asking, Request, refused
from penstock.connectors.http.bodies import TYPES, joined
from penstock.sdk import Failure, Receipt, Rejected, Writer
from penstock.sdk.kit.background import Background

if TYPE_CHECKING:
    from penstock.connectors.http.sink import HttpSinkConfig

Rows = tuple[int, ...]
"""Rows of a batch that share a request."""


class Client:
    """Connections to servers, kept between batches, on an event loop of their own."""

    def __init__(self, config: HttpSinkConfig) -> None:
        self._config = config
        self._background = Background()
        self._asking = self._background.run(self._opened())

    def send(self, requests: Sequence[Request]) -> list[Answer]:
        """Sends all, and tells the last answers. Raises Transient where no more tries are left."""
        return self._background.run(self._all(requests))

    def try_(self, url: str) -> None:
        """Asks for the head of what is there; any answer will do that is not about who we are.

        Raises Transient or Permanent.
        """
        answer = self._background.run(self._asking.once(Request("HEAD", url, {})))
        if answer.status in (401, 403):
            raise refused(url, answer)

    def close(self) -> None:
        """Ends the connections."""
        self._background.run(self._asking.close())
        self._background.close()

    async def _opened(self) -> Asking:
        config = self._config
        return Asking(config.auth, config.tls, config.timeout, config.retry)

    async def _all(self, requests: Sequence[Request]) -> list[Answer]:
        turns = asyncio.Semaphore(self._config.concurrency)

        async def one(request: Request) -> Answer:
            async with turns:
                return await self._asking.patiently(request, settles=self._config.settles)

        tasks = [asyncio.ensure_future(one(request)) for request in requests]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()


class HttpWriter(Writer):
    """Sends the rows that it is given before it takes more."""

    def __init__(self, client: Client, config: HttpSinkConfig) -> None:
        self._client, self._config = client, config
        self._requests = 0

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        bodies = payloads.to_pylist()
        urls, headers = self._filled(rows)
        several = self._config.framing != "single"
        groups = self._groups(urls, headers) if several else [(at,) for at in range(len(bodies))]
        failures = self._send(groups, urls, headers, bodies)
        alone = [failure for failure in failures if len(failure[0]) == 1]
        together = [(at,) for rows_, _ in failures if len(rows_) > 1 for at in rows_]
        alone += self._send(together, urls, headers, bodies)
        return [Failure(at, error) for (at,), error in sorted(alone, key=lambda each: each[0])]

    def commit(self) -> Receipt:
        return {"requests": self._requests}

    def _send(
        self,
        groups: Sequence[Rows],
        urls: list[str],
        headers: list[dict[str, str]],
        bodies: list[bytes],
    ) -> list[tuple[Rows, Rejected]]:
        """Those groups of rows that the server calls bad."""
        config = self._config
        bare = config.method in ("GET", "DELETE")
        requests = [
            Request(
                config.method, urls[rows[0]], headers[rows[0]],
                None if bare else joined([bodies[at] for at in rows], config.framing),
            )
            for rows in groups
        ]  # fmt: skip
        self._requests += len(requests)
        bad = []
        answers = self._client.send(requests)
        for rows, request, answer in zip(groups, requests, answers, strict=True):
            if config.is_success(answer.status):
                continue
            if not config.is_rejection(answer.status):
                raise refused(request.url, answer, config.retry)
            bad.append((rows, Rejected(answer.said, code=f"http-{answer.status}")))
        return bad

    def _filled(self, rows: pa.RecordBatch) -> tuple[list[str], list[dict[str, str]]]:
        """The URL and the headers of each row."""
        escaped = _escaped(rows, self._config.url.columns)
        urls = [url or "" for url in self._config.url.fill(escaped)]
        columns: dict[str, list[str | None]] = {
            "Content-Type": [TYPES[self._config.framing]] * rows.num_rows
        }
        for name, text in self._config.headers.items():
            columns[name] = text.fill(rows)
        headers = [
            {name: value for name, values in columns.items() if (value := values[at]) is not None}
            for at in range(rows.num_rows)
        ]
        return urls, headers

    def _groups(self, urls: list[str], headers: list[dict[str, str]]) -> list[Rows]:
        """Rows that may share a request, in order."""
        alike: dict[Any, list[int]] = defaultdict(list)
        for at, url in enumerate(urls):
            alike[url, *headers[at].items()].append(at)
        return [tuple(rows) for rows in alike.values()]


def _escaped(rows: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    for name in names:
        texts = rows.column(name).cast(pa.string()).to_pylist()
        safe = pa.array([None if t is None else quote(t, safe="") for t in texts], pa.string())
        rows = rows.set_column(rows.schema.get_field_index(name), name, safe)
    return rows

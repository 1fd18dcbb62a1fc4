"""The HTTP sink: a client that sends rows as requests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.http.client import HttpClient
from penstock.connectors.http.config import HttpSinkConfig
from penstock.connectors.http.writer import HttpWriter
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.columns.template import Template


class HttpSink(Sink[HttpSinkConfig]):
    """Sends rows as HTTP requests, one row or several rows in a body.

    Connection failures, timeouts and the statuses of `retry` are retried with backoff, or after
    the time of a `Retry-After` header. Rows with a status of `reject` become dead letters; the
    rows of a rejected body with several rows are first sent again one by one.

    Each partition of a batch has up to `concurrency` parallel requests.

    ```yaml
    type: http
    from: orders
    url: https://api.example.com/customers/{customer}/orders
    auth: {token: "${env:TOKEN}"}
    headers: {Idempotency-Key: "{id}"}
    ```
    """

    acknowledges = "each response has a status of `success`"
    capabilities = frozenset({Capability.BYTES})
    extra = "http"
    client_modules = ("aiohttp",)
    max_rows_per_write = 500

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        templates: list[tuple[tuple[str, ...], Template]] = [(("url",), self.config.url)]
        templates += [
            (("headers", name), template) for name, template in self.config.headers.items()
        ]
        raise_all(
            error for option, template in templates for error in template.check(columns, *option)
        )

    def check(self) -> None:
        """Sends a HEAD request to the URL, unless the URL depends on columns."""
        if self.config.url.constant is not None:
            client = self.open()
            try:
                client.check(self.config.url.constant)
            finally:
                client.close()

    def open(self) -> HttpClient:
        return HttpClient(self.config, self.config.concurrency)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return HttpWriter(client, self.config)

"""The sink of HTTP requests: a client."""

from __future__ import annotations

from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from penstock.connectors.http.asking import Retry
from penstock.connectors.http.auth import Auth
from penstock.connectors.http.bodies import Framing
from penstock.connectors.http.sending import Client, HttpWriter
from penstock.connectors.http.statuses import Status, listed
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Config, Duration, Sink, Writer
from penstock.sdk.kit.template import Template
from penstock.sdk.kit.tls import Tls


class HttpSinkConfig(Config):
    url: Template
    """Where requests go. `{column}` in it is replaced by the row's value, escaped."""
    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] = "POST"
    """The method of requests; GET and DELETE have no body."""
    headers: dict[str, Template] = {}
    """Headers of requests; `{column}` in them is replaced by the row's value."""
    framing: Framing = "single"
    """What a body is: a `single` row, or as many as the node's `batch` says (500 rows if it says
    nothing), as `lines` or as the elements of a JSON `array`."""
    auth: Auth | None = None
    """Who we are."""
    tls: Tls | bool = True
    """Whom to trust where the URL begins with https, and who we are."""
    concurrency: int = Field(default=8, ge=1)
    """How many requests of a writer are under way at once; 1 keeps the order of rows."""
    timeout: Duration = 30.0
    """How long a request may take."""
    retry: Retry = Retry()
    """What happens to requests that fail for a reason that may pass."""
    success: list[Status] = ["2xx"]
    """The statuses that say that all is well, each as 200 or as 2xx."""
    reject: list[Status] = [400, 409, 413, 415, 422]
    """The statuses that say that the rows are bad: they go to the dead letters, and are not tried
    again."""

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.framing != "single" and self.method in ("GET", "DELETE"):
            raise ValueError(f"{self.method} has no body, so framing must be single")
        return self

    def is_success(self, status: int) -> bool:
        return listed(status, self.success)

    def is_rejection(self, status: int) -> bool:
        return listed(status, self.reject)

    def settles(self, status: int) -> bool:
        """Whether it says what became of the rows."""
        return self.is_success(status) or self.is_rejection(status)


class HttpSink(Sink[HttpSinkConfig]):
    """Sends rows as HTTP requests: one each, or several in a body.

    A request that fails for a reason that may pass (no connection, no answer in time, one of the
    statuses of `retry`) is sent again, at the earliest when `Retry-After` says. Rows that the
    server calls bad (`reject`) become dead letters; in a body of several, they are sent once more
    one by one.

    Each partition of a batch has `concurrency` requests under way.

    ```yaml
    type: http
    from: orders
    url: https://api.example.com/customers/{customer}/orders
    auth: {token: "${env:TOKEN}"}
    headers: {Idempotency-Key: "{id}"}
    ```
    """

    acknowledges = "each request was answered with one of `success`"
    capabilities = frozenset({Capability.BYTES})
    extra = "http"
    clients = ("aiohttp",)
    most_rows = 500

    def accepts(self, columns: pa.Schema) -> None:
        super().accepts(columns)
        texts: list[tuple[tuple[str, ...], Template]] = [(("url",), self.config.url)]
        texts += [(("headers", name), text) for name, text in self.config.headers.items()]
        raise_all(each for option, text in texts for each in text.mistakes(columns, *option))

    def check(self) -> None:
        """Asks for the head of the URL, where it is the same for all rows."""
        if self.config.url.constant is not None:
            client = self.open()
            try:
                client.try_(self.config.url.constant)
            finally:
                client.close()

    def open(self) -> Client:
        return Client(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return HttpWriter(client, self.config)

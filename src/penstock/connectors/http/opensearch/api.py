"""The HTTP interface of Elasticsearch and OpenSearch."""

from __future__ import annotations

import gzip
from typing import Any
from urllib.parse import quote

from penstock.connectors.http.client import HttpClient, Request, Response
from penstock.connectors.http.opensearch.config import ServerConfig
from penstock.connectors.http.opensearch.errors import response_error

MAX_RESPONSE = 64 << 20
"""The size in bytes of the largest response that is read."""
_JSON, _LINES = "application/json", "application/x-ndjson"


class SearchServer:
    """A client. Methods raise Transient or Permanent."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._url = config.url.rstrip("/")
        self._client = HttpClient(config)
        self.known_indexes: set[str] = set()
        """The indexes that exist, as far as was checked."""

    def request(self, method: str, path: str, body: Any = None) -> Response:
        """Sends a request with a JSON body and returns the response, of any status."""
        from msgspec import json

        content = None if body is None else json.encode(body)
        return self._send(method, path, {"Content-Type": _JSON}, content)

    def call(self, method: str, path: str, body: Any = None, index: str | None = None) -> bytes:
        """Sends a request with a JSON body and returns the body of a successful response."""
        response = self.request(method, path, body)
        if not self._config.is_final(response.status):
            raise response_error(response, self._config, index)
        return response.body

    def bulk(self, lines: bytes, compressed: bool) -> Response:
        """Sends actions and documents, and returns the response, of any status."""
        headers = {"Content-Type": _LINES}
        if compressed:
            lines, headers["Content-Encoding"] = gzip.compress(lines, 1), "gzip"
        path = "/_bulk?filter_path=errors,items.*.status,items.*.error"
        return self._send("POST", path, headers, lines)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> Response:
        request = Request(method, f"{self._url}{path}", headers, body)
        (response,) = self._client.send([request], MAX_RESPONSE)
        return response


def index_path(index: str) -> str:
    """Returns the path of an index, or of several."""
    return f"/{quote(index, safe=',*')}"

"""Requests of keys: a URL, and with POST a body, for one key or for several keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from penstock.connectors.http.client import Request
from penstock.connectors.http.config import Framing
from penstock.connectors.http.framing import CONTENT_TYPES, join_body
from penstock.connectors.http.lookup.config import HttpLookupSourceConfig
from penstock.connectors.http.request_lines import UrlTemplate, percent_encode
from penstock.core.errors import Rejected
from penstock.sdk.columns.row_json import row_payload


class KeyRequest(NamedTuple):
    """A request, and the indexes of its keys."""

    keys: Sequence[int]
    request: Request


class KeyRequests:
    """The requests of keys.

    `keys` has the columns of the primary key, without nulls.
    """

    def __init__(self, config: HttpLookupSourceConfig, keys: pa.RecordBatch) -> None:
        self._config, self._keys = config, keys
        self._url = UrlTemplate(config.url)
        for name in config.url.columns:
            keys = percent_encode(keys, name)
        self._encoded = {name: keys.column(name).to_pylist() for name in config.url.columns}

    def of(self, numbers: Sequence[int]) -> KeyRequest | Rejected:
        """Returns the request of keys by their indexes, or the rejection of a key."""
        (url,) = self._url.render_encoded(self._joined(numbers))
        if isinstance(url, Rejected):
            return url
        headers = self._config.revealed_headers()
        if self._config.method == "GET":
            return KeyRequest(numbers, Request("GET", url, headers))
        framing: Framing = "single" if self._config.max_keys == 1 else "array"
        body = join_body([row_payload(self._keys, number) for number in numbers], framing)
        headers = {"Content-Type": CONTENT_TYPES[framing], **headers}
        return KeyRequest(numbers, Request("POST", url, headers, body))

    def _joined(self, numbers: Sequence[int]) -> pa.RecordBatch:
        """Returns one row with the encoded values of keys, separated by commas."""
        if not self._encoded:
            return self._keys.slice(0, 1)
        joined = {
            name: [",".join(texts[number] for number in numbers)]
            for name, texts in self._encoded.items()
        }
        return pa.RecordBatch.from_pydict(joined)

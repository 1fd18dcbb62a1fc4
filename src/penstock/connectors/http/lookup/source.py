"""The source `http_lookup`: rows of a web service by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import pyarrow as pa

from penstock.connectors.http.client import HttpClient, Response
from penstock.connectors.http.framing import resolve_pointer, split_body
from penstock.connectors.http.lookup.config import HttpLookupSourceConfig
from penstock.connectors.http.lookup.requests import KeyRequest, KeyRequests
from penstock.core.errors import OptionError, PlanError, RecordError, Rejected, raise_all
from penstock.sdk import Capability, DecodeError, LookupSource, Read, registry
from penstock.sdk.decoding import decode_in_fork
from penstock.sdk.lookup import found_payloads

METADATA = pa.schema([("url", pa.string())])
Found = tuple[bytes, str, int]
"""A payload, the URL of its request, and the index of its key."""


class HttpLookupSource(LookupSource[HttpLookupSourceConfig]):
    """Looks up rows of a web service by key.

    A request has one key, or up to `max_keys`. A response with a success status and an empty body,
    or with null at `pointer`, has no row; neither has one with a status of `missing`. A key with a
    status of `reject`, or with several rows, is a dead letter and has no row. Other errors are
    retried, and then restart the query with backoff.

    ```yaml
    type: http_lookup
    url: https://api.example.com/v1/customers/{id}
    auth: {token: "${env:TOKEN}"}
    format: json
    schema: id LONG, name STRING, plan STRING
    primary_key: [id]
    lookup: {cache: {ttl: 1m}}
    ```
    """

    optional_capabilities = {Capability.LOOKUP_BY_KEY: "url"}
    capabilities = frozenset({Capability.LOOKUP_BY_KEY, Capability.BYTES})
    parallelism = "the tasks of the stream"
    acknowledges = None
    extra = "http"
    client_modules = ("aiohttp", "msgspec", "jsonpointer")

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def prepare_lookup(self) -> None:
        if not self.primary_key:
            raise PlanError(
                "rows are looked up by key, and no primary key is declared",
                code="missing-option", hint="Set primary_key: [COLUMN].",
            )  # fmt: skip

    def validate(self) -> None:
        super().validate()
        raise_all(self._url_errors())

    def _url_errors(self) -> Iterator[OptionError]:
        config, key = self.config, self.primary_key
        used = config.url.columns
        if self.columns is not None and not used <= {*self.columns.names}:
            yield from config.url.check(self.columns, "url")
        elif key and (used - {*key} or (config.method == "GET" and used != {*key})):
            yield OptionError.of(
                "url", message=f"expected the columns of the primary key, {', '.join(key)}, found "
                f"{', '.join(sorted(used)) or 'none'}",
                code="wrong-key",
                hint=f"Write each column of the primary key in braces, as in /{{{key[0]}}}.",
            )  # fmt: skip
        elif config.max_keys > 1 and config.method == "GET" and len(key) > 1:
            yield OptionError.of(
                "max_keys", message="several keys in a URL require a primary key of one column",
                hint="Remove max_keys, or set method: POST.",
            )  # fmt: skip
        json = registry.find("format", "json")
        if config.max_keys > 1 and self.format is not None and not isinstance(self.format, json):
            yield OptionError.of(
                "max_keys",
                message="several keys in a request require format: json, as a response is an array",
                code="wrong-format", hint="Remove max_keys, or set format: json.",
            )  # fmt: skip

    def check(self) -> None:
        """Sends a HEAD request to the URL, or to its server if the URL has columns."""
        url = self.config.url.constant
        if url is None:
            parts = urlsplit(str(self.config.url))
            if "{" in parts.netloc:
                return
            url = f"{parts.scheme}://{parts.netloc}/"
        client = self.open()
        try:
            client.check(url)
        finally:
            client.close()

    def open(self) -> HttpClient:
        return HttpClient(self.config, self.config.concurrency)

    def lookup(self, client: HttpClient, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        requests, count = KeyRequests(self.config, keys), self.config.max_keys
        numbers = range(keys.num_rows)
        groups = [numbers[start : start + count] for start in range(0, keys.num_rows, count)]
        found, rejected = self._send(client, requests, keys, groups, read)
        single = [[number] for group in rejected for number in group]
        found += self._send(client, requests, keys, single, read)[0]
        return found_payloads(found, read.metadata)

    def _send(
        self, client: HttpClient, requests: KeyRequests, keys: pa.RecordBatch,
        groups: Sequence[Sequence[int]], read: Read,
    ) -> tuple[list[Found], list[Sequence[int]]]:  # fmt: skip
        """Requests groups of keys. Returns the payloads, and the rejected groups of several keys.

        Rejected groups of one key are bad records.
        """
        config, sent, rejected = self.config, list[KeyRequest](), list[Sequence[int]]()
        for group in groups:
            made = requests.of(group)
            if isinstance(made, KeyRequest):
                sent.append(made)
            else:
                _reject(read, str(config.url), group, made, rejected)
        found: list[Found] = []
        responses = client.send([each.request for each in sent], config.max_message_size)
        for (group, request), response in zip(sent, responses, strict=True):
            if config.is_missing(response.status):
                continue
            if response.status // 100 == 2:
                try:
                    found += self._payloads(response, request.url, keys, group, read)
                except (DecodeError, ValueError) as wrong:
                    bad = wrong if isinstance(wrong, DecodeError) else DecodeError(str(wrong))
                    _reject(read, request.url, group, bad, rejected, response.body)
                continue
            if not config.is_rejection(response.status):
                raise response.error(request.url, config.retry)
            text = f"{response.status}: {response.text}".removesuffix(": ")
            error = Rejected(text, code=f"http-{response.status}")
            _reject(read, request.url, group, error, rejected)
        return found, rejected

    def _payloads(
        self, response: Response, url: str, keys: pa.RecordBatch, group: Sequence[int], read: Read
    ) -> list[Found]:
        """Returns the payloads of a response, each with the index of its key.

        Raises DecodeError or ValueError for a body that has no row.
        """
        pointer = self.config.pointer
        if not response.body.strip():
            return []
        if self.config.max_keys > 1:
            rows = split_body(response.body, "array", pointer)
            return self._matched(rows, url, keys, group, read) if rows else []
        row = bytes(resolve_pointer(response.body, pointer) or b"null").strip()
        return [] if row == b"null" else [(row, url, group[0])]

    def _matched(
        self, rows: Sequence[bytes], url: str, keys: pa.RecordBatch, group: Sequence[int],
        read: Read,
    ) -> list[Found]:  # fmt: skip
        """Returns the rows of an array that have one of the keys of a group.

        A row without a key, and a key with several rows, are bad records.
        """
        assert self.format is not None
        decode = decode_in_fork if read.isolated else type(self.format).rows
        decoded = decode(self.format, pa.array(rows, pa.binary()), keys.schema)
        for index, text, part, error in decoded.failures:
            read.reject(text or rows[index], url, group[0], error, part)
        numbers = {key: group[place] for place, key in enumerate(_values(keys, group))}
        places = range(len(rows)) if decoded.index is None else decoded.index.to_pylist()
        found: dict[int, list[bytes]] = defaultdict(list)
        for place, key in zip(places, _values(decoded.rows), strict=True):
            if None in key:
                missing = keys.schema.names[key.index(None)]
                error = DecodeError(f'the row lacks the column "{missing}" of the primary key')
                read.reject(rows[place], url, group[0], error)
            elif key in numbers:
                found[numbers[key]].append(rows[place])
        for number, several in found.items():
            if len(several) > 1:
                error = Rejected(f"expected one row, found {len(several)}", code="several-rows")
                read.reject(None, url, number, error)
        return [(several[0], url, n) for n, several in found.items() if len(several) == 1]


def _values(
    rows: pa.RecordBatch, numbers: Sequence[int] | None = None
) -> Iterator[tuple[object, ...]]:
    """Returns the values of rows, or of those with the indexes `numbers`."""
    rows = rows if numbers is None else rows.take(pa.array(numbers, pa.int64()))
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _reject(
    read: Read, url: str, group: Sequence[int], error: RecordError, rejected: list[Sequence[int]],
    payload: bytes | None = None,
) -> None:  # fmt: skip
    """Makes the key of a group a bad record, or keeps a group of several keys in `rejected`."""
    if len(group) > 1:
        rejected.append(group)
    else:
        read.reject(payload, url, group[0], error)

"""Writer of the InfluxDB sink: rows as bodies of lines, rejected rows as failures."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.http.client import HttpClient, Request, Response
from penstock.connectors.http.influxdb.config import InfluxdbSinkConfig
from penstock.connectors.http.influxdb.lines import LineEncoder
from penstock.core.errors import RecordError
from penstock.sdk import (
    Failure,
    Permanent,
    Receipt,
    Rejected,
    Transient,
    Writer,
    bisect_failures,
)

_NOT_FOUND, _TOO_LARGE = 404, 413


class InfluxdbWriter(Writer):
    """Sends the lines of a call in one request. Finds rejected lines by requests with parts.

    The server stores the other lines of a request that it rejects. Sent again, they replace
    themselves, as they have times.
    """

    def __init__(self, client: HttpClient, config: InfluxdbSinkConfig, schema: pa.Schema) -> None:
        self._client, self._config = client, config
        self._encoder = LineEncoder(config, schema)
        self._requests = 0

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:  # fmt: skip
        lines, errors = self._encoder.encode(rows)
        valid = [index for index in range(rows.num_rows) if index not in errors]
        if errors:
            lines = lines.take(pa.array(valid, pa.int64()))

        def send(start: int, stop: int) -> None:
            self._send(lines.slice(start, stop - start))

        failures = [Failure(index, error) for index, error in errors.items()]
        for start, _, outcome in bisect_failures(len(valid), send):
            if isinstance(outcome, RecordError):
                failures.append(Failure(valid[start], outcome))
        return sorted(failures, key=lambda failure: failure.index)

    def commit(self) -> Receipt:
        return {"requests": self._requests}

    def _send(self, lines: pa.StringArray) -> None:
        """Sends lines. Raises Rejected if the server rejects one of them."""
        body, headers = _joined(lines), {"Content-Type": "text/plain; charset=utf-8"}
        if self._config.compression == "gzip":
            body, headers["Content-Encoding"] = gzip.compress(body, 1), "gzip"
        request = Request("POST", self._config.write_url, headers, body)
        self._requests += 1
        (response,) = self._client.send([request])
        if self._config.is_success(response.status):
            return
        if not self._config.is_final(response.status):
            raise write_error(response, self._config)
        code = "too-large" if response.status == _TOO_LARGE else f"http-{response.status}"
        raise Rejected(f"{response.status}: {response.text}".removesuffix(": "), code=code)


def _joined(lines: pa.StringArray) -> bytes:
    """Returns lines with line breaks between them."""
    together = pa.ListArray.from_arrays([0, len(lines)], lines)
    return bytes(pc.binary_join(together, "\n")[0].as_buffer().to_pybytes())


def write_error(response: Response, config: InfluxdbSinkConfig) -> Transient | Permanent:
    """Returns the error of a response that neither accepts nor rejects points."""
    error = response.error(config.url, config.retry)
    if response.status == _NOT_FOUND:
        target = f'bucket "{config.bucket}"' if config.bucket else f'database "{config.database}"'
        error.hint = f"Create the {target}, or correct the options."
    return error

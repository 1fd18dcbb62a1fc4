"""The InfluxDB sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.http.client import HttpClient, Request
from penstock.connectors.http.influxdb.columns import check_columns
from penstock.connectors.http.influxdb.config import InfluxdbSinkConfig
from penstock.connectors.http.influxdb.writer import InfluxdbWriter, write_error
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer


class InfluxdbSink(Sink[InfluxdbSinkConfig]):
    """Writes rows as points to InfluxDB 2 or 1, and to systems with their line protocol.

    A point replaces the fields of an earlier point with the same measurement, tags and time. With
    `timestamp` a batch that is repeated after a crash therefore changes nothing.

    A row is a dead letter if it has no field, if a value has no exact form in its type of field
    (as NaN), or if the server rejects its line, for example because a field has another type in
    earlier points. Connection failures, timeouts and the statuses of `retry` are retried.

    ```yaml
    type: influxdb
    from: readings
    url: http://localhost:8086
    auth: {token: "${env:INFLUX_TOKEN}"}
    bucket: weather
    org: stations
    measurement: readings
    tags: [station]
    fields: {celsius: temperature, humidity: {column: humidity, type: float}}
    timestamp: at
    ```
    """

    acknowledges = "the server has accepted each line"
    capabilities = frozenset({Capability.ROWS, Capability.ORDERED})
    extra = "http"
    client_modules = ("aiohttp",)
    max_rows_per_write = 5_000

    @property
    def overwriting_columns(self) -> Sequence[str] | None:
        """The columns of a series and the time.

        Also without `timestamp` one writer has all rows of a series, as it makes their times
        different.
        """
        config = self.config
        named = {*config.measurement.columns, *config.tags.values(), config.timestamp}
        return sorted(name for name in named if name is not None)

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        raise_all(check_columns(self.config, columns))

    def check(self) -> None:
        """Sends a write without points, which needs the credentials and the bucket or database."""
        client = self.open()
        try:
            (response,) = client.send([Request("POST", self.config.write_url, {}, b"")])
        finally:
            client.close()
        if not self.config.is_final(response.status):
            raise write_error(response, self.config)

    def open(self) -> HttpClient:
        return HttpClient(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return InfluxdbWriter(client, self.config, schema)

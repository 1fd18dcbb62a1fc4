from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.http.influxdb import InfluxdbSink
from penstock.testing.contract import SinkContract
from servers.influxdb import PASSWORD, USER, Influxdb

NO_FIELD = "a field is a number, a text or a boolean"


class TestInfluxdbSink(SinkContract):
    component = InfluxdbSink
    format = None
    wrong_credentials = {"auth": {"username": USER, "password": "wrong"}}
    unsupported = {"test_every_type": NO_FIELD, "test_pipeline_resumes_after_failure": NO_FIELD}

    @pytest.fixture
    def server(self, influxdb: Influxdb) -> Influxdb:
        return influxdb

    @pytest.fixture
    def database(self, influxdb: Influxdb) -> str:
        return influxdb.create_database()

    @pytest.fixture
    def options(self, influxdb: Influxdb, database: str) -> dict[str, Any]:
        return {
            "url": influxdb.url,
            "auth": {"username": USER, "password": PASSWORD},
            "database": database,
            "measurement": "m",
            "retry": {"attempts": 2, "backoff": "100ms"},
            "timeout": "3s",
        }

    @pytest.fixture
    def rows(self, influxdb: Influxdb, database: str) -> Any:
        def rows(schema: pa.Schema) -> list[dict[str, Any]]:
            found = influxdb.query('SELECT * FROM "m"', database)
            if not found:
                return []
            names = found[0]["columns"]
            points = [dict(zip(names, values, strict=True)) for values in found[0]["values"]]
            return [{name: point.get(name) for name in schema.names} for point in points]

        return rows

"""Servers that clients reach over HTTP."""

from __future__ import annotations

import gzip
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from servers.influxdb import PASSWORD, USER, Influxdb
from stores.system import ROWS, System


class InfluxdbPoints(System):
    """Points of a measurement. The client writes lines that Arrow joins."""

    name = "influxdb"
    has_source = False

    def __init__(self, directory: Path, server: Influxdb) -> None:
        self.server, self.database = server, ""

    def options(self) -> dict[str, Any]:
        return {**self.server.login, "database": self.database}

    def of_sink(self) -> dict[str, Any]:
        fields = ["id", "name", "price", "count"]
        return {
            **self.options(), "measurement": "t", "fields": fields, "timestamp": "changed",
            "precision": "us",
        }  # fmt: skip

    def create(self) -> None:
        self.database = self.server.create_database()

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        named = f"db={self.database}&precision=u&u={USER}&p={PASSWORD}"
        for rows in batches:
            texts = {name: rows[name].cast(pa.string()) for name in ("id", "price", "count")}
            time = rows["changed"].cast(pa.int64()).cast(pa.string())
            lines = pc.binary_join_element_wise(
                "t id=", texts["id"], 'i,name="', rows["name"], '",price=', texts["price"],
                ",count=", texts["count"], "i ", time, "",
            )  # fmt: skip
            for start in range(0, ROWS, ROWS // 2):
                body = "\n".join(lines.slice(start, ROWS // 2).to_pylist()).encode()
                headers = {"Content-Encoding": "gzip"}
                url = f"{self.server.url}/write?{named}"
                request = urllib.request.Request(url, gzip.compress(body, 1), headers)
                urllib.request.urlopen(request, timeout=60).close()

    def read(self) -> int:
        (series,) = self.server.query('SELECT count("id") FROM "t"', self.database)
        return int(series["values"][0][1])

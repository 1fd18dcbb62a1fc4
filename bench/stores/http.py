"""Servers that clients reach over HTTP."""

from __future__ import annotations

import gzip
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from servers.influxdb import PASSWORD, USER, Influxdb
from servers.opensearch import Opensearch
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


class OpensearchIndex(System):
    """An index of documents. The client sends bulk requests, and reads pages of documents."""

    name = "opensearch"

    def __init__(self, directory: Path, server: Opensearch) -> None:
        self.server = server

    def options(self) -> dict[str, Any]:
        return {"url": self.server.url, "index": "t"}

    def of_sink(self) -> dict[str, Any]:
        return {**self.options(), "key": "{id}", "compression": "none"}

    def of_source(self) -> dict[str, Any]:
        return {**self.options(), "cursor_columns": ["id"]}

    def create(self) -> None:
        with suppress(RuntimeError):
            self.server.call("DELETE", "/t")
        fields = {"id": "long", "name": "keyword", "price": "double", "count": "integer",
                  "changed": "date_nanos"}  # fmt: skip
        properties = {name: {"type": type_} for name, type_ in fields.items()}
        self.server.call("PUT", "/t", {"mappings": {"properties": properties}})

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        path = "/t/_bulk?filter_path=errors,items.*.error"
        for rows in batches:
            for start in range(0, ROWS, ROWS // 2):
                lines = []
                for document in rows.slice(start, ROWS // 2).to_pylist():
                    lines.append(b'{"index":{"_id":"%d"}}' % document["id"])
                    lines.append(msgspec.json.encode(document))
                found = self.server.call("POST", path, b"\n".join([*lines, b""]))
                assert not found["errors"], found

    def read(self) -> int:
        """Makes the documents visible, and reads each one as a text."""
        self.server.call("POST", "/t/_refresh")
        opened = self.server.call("POST", "/t/_search/point_in_time?keep_alive=1m")
        page = {"size": ROWS, "sort": [{"id": "asc"}], "track_total_hits": False,
                "pit": {"id": opened["pit_id"], "keep_alive": "1m"}}  # fmt: skip
        count = 0
        while hits := self._hits(page):
            count += len(hits)
            page["search_after"] = hits[-1].sort
        return count

    def _hits(self, page: dict[str, Any]) -> list[_Hit]:
        headers = {"Content-Type": "application/json"}
        url = f"{self.server.url}/_search"
        request = urllib.request.Request(url, msgspec.json.encode(page), headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return msgspec.json.decode(response.read(), type=_Found).hits.hits


class _Hit(msgspec.Struct):
    source: msgspec.Raw = msgspec.field(name="_source")
    sort: list[Any]


class _Hits(msgspec.Struct):
    hits: list[_Hit]


class _Found(msgspec.Struct):
    hits: _Hits

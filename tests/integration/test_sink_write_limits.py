"""A sink's `batch` and `rate_limit`, in a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from servers.web import Web


@pytest.mark.parametrize("portions", [{"batch": {"max_records": 10}}, {"rate_limit": 200}])
def test_requests_of_so_many_rows(
    web_server: Web, tmp_path: Path, penstock_spark: SparkSession, portions: dict[str, Any]
) -> None:
    name = web_server.new_name()
    pipeline = {
        "name": "portions",
        "runtime": {"state": str(tmp_path / "state")},
        "sources": {"in": {"type": "generate", "fields": {"id": "sequence"}, "rows": 95,
                           "partitions": 2}},
        "sinks": {"out": {"type": "http", "from": "in", "url": f"{web_server.url}/kept/{name}",
                          "framing": "lines", **portions}},
    }  # fmt: skip
    file = tmp_path / "portions.yaml"
    file.write_text(json.dumps(pipeline))
    assert not app.run(file, spark=penstock_spark.newSession()).errors
    sizes = [len(body.splitlines()) for body in web_server.bodies(name)]
    assert sum(sizes) == 95 and max(sizes) <= 20 and len(sizes) >= 5
    if "batch" in portions:
        assert max(sizes) == 10
    rows = [
        json.loads(line)["id"] for body in web_server.bodies(name) for line in body.splitlines()
    ]
    assert sorted(rows) == list(range(95)) or sorted(rows) == list(range(1, 96))

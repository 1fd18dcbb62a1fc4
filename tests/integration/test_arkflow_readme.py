"""The configurations of ArkFlow's readme, with the addresses of servers here."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from kafka_records import put
from pipelines import Workspace

from penstock.runtime.handle import RunHandle
from servers.influxdb import VictoriaMetrics
from servers.kafka import Kafka
from servers.s3 import S3, Bucket

pytestmark = pytest.mark.spark

README = Path(__file__).with_name("arkflow_readme.yaml")


def until(handle: RunHandle, condition: Callable[[], object]) -> None:
    """Waits for a condition during a run."""
    end = time.monotonic() + 60
    while not condition():
        outcome = handle.wait(0.1)
        assert outcome is None and time.monotonic() < end, outcome


def sends_until_read(kafka: Kafka, topics: list[str]) -> bool:
    """Writes a record, and returns whether an earlier one has been read from the latest offset."""
    put(kafka, topics[0], b'{"value":10}')
    return bool(kafka.messages(topics[1]))


def values_of(kafka: Kafka, topic: str) -> set[bytes | None]:
    """Returns the values of the records of a topic."""
    return {each.value() for each in kafka.messages(topic)}


def test_readme(
    workspace: Workspace, kafka: Kafka, victoria_metrics: VictoriaMetrics, s3: S3, bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    topics = [kafka.create_topic() for _ in range(3)]
    table = {
        "datacenter": ["north", "south"], "device_id": ["d1", "d2"], "temperature": [20.5, 21.5],
        "status": [True, False],
    }  # fmt: skip
    parquet.write_table(pa.table(table), workspace.root / "data.parquet")
    bucket.put("data.parquet", (workspace.root / "data.parquet").read_bytes())
    storage = s3.storage
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", storage["auth"]["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", storage["auth"]["secret_key"])
    monkeypatch.setenv("INFLUXDB_TOKEN", "made-up-token")
    text = README.read_text()
    for before, after in {
        "localhost:9092": kafka.address, "test-topic-in": topics[0], "test-topic": topics[1],
        "error-topic": topics[2], "http://localhost:8086": victoria_metrics.url,
        "s3://bucket": f"s3://{bucket.name}", "my-bucket": bucket.name,
        'region: "us-west-2"':
            f'region: "us-west-2"\n        endpoint: "{storage["endpoint_url"]}"\n'
            "        allow_http: true",
    }.items():  # fmt: skip
        assert before in text
        text = text.replace(before, after)
    printed = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(printed, write_through=True)):
        handle = workspace.start(text)
        expected = {
            b'{"timestamp":1625000000000,"value":10,"sensor":"temp_1"}',
            b'{"user_id":1,"name":"a","order_id":7,"amount":2.5}',
            b'{"value":3,"doubled_value":6}',
        }
        until(handle, lambda: expected <= set(printed.getvalue().splitlines()))
        until(handle, lambda: sends_until_read(kafka, topics))
        # A message that cannot be read fails with those of the same batch: it comes after them.
        put(kafka, topics[0], b'{"value":11}')
        until(handle, lambda: b'{"value":11}' in values_of(kafka, topics[1]))
        put(kafka, topics[0], b"no json")
        until(handle, lambda: kafka.messages(topics[2]))
        until(handle, lambda: victoria_metrics.values("temperature_value"))
        handle.stop()
        assert handle.wait(60) is not None
    assert values_of(kafka, topics[1]) == {b'{"value":10}', b'{"value":11}'}
    assert values_of(kafka, topics[2]) == {b"no json"}
    found = {
        (each["metric"]["location"], each["metric"]["device"], *each["values"])
        for each in victoria_metrics.values("temperature_value")
    }
    assert found == {("north", "d1", 20.5), ("south", "d2", 21.5)}

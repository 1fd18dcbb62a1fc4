"""Export of metrics, spans and log events by OTLP to a receiver, and to none."""

from __future__ import annotations

import time
from typing import Any

from otlp_receiver import attributes, otlp_receiver
from penstock.core.known_secrets import remember_secret
from penstock.observe.batches import BatchReports, FailedBatch
from penstock.observe.execution import Execution
from penstock.observe.metrics import Metrics
from penstock.observe.otlp.telemetry import Endpoint, Telemetry
from penstock.observe.progress import QueryProgress
from penstock.observe.prometheus import Measured, run_families
from servers.server import free_port

BATCH = {
    "name": "hourly", "batchId": 7, "timestamp": "2026-05-01T10:00:00.000Z",
    "durationMs": {"triggerExecution": 1000, "latestOffset": 100, "walCommit": 50,
                   "queryPlanning": 50, "addBatch": 700, "commitOffsets": 60},
}  # fmt: skip


class Events:
    """A log that keeps its events."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda event, **facts: self.found.append((level, event))


def telemetry(url: str, log: Events, metrics: Metrics) -> Telemetry:
    return Telemetry(
        Endpoint(url, {"Authorization": "Bearer of-a-test"}, interval=60.0), "shop", "r1",
        lambda: run_families([Measured("shop", metrics.snapshot())]), log, lambda query: 7,
    )  # fmt: skip


def measured() -> Metrics:
    metrics = Metrics("r1")
    metrics.flow("orders", "source", "kafka").add(5)
    metrics.queries["hourly"] = Execution()
    metrics.progress["hourly"] = QueryProgress().add(BATCH).add(BATCH)
    return metrics


def test_a_batch_is_a_trace_with_its_phases_and_its_log_events() -> None:
    metrics, log = measured(), Events()
    remember_secret("s3cret-of-a-test")
    with otlp_receiver() as receiver:
        with telemetry(receiver.url, log, metrics) as exported:
            reports = BatchReports()
            reports.observers.append(exported.add_batch)
            reports.begin("hourly", 7)
            reports.add("hourly", 7, "out", rows=3, bad=1)
            reports.finish(BATCH)
            exported.add_batch(
                FailedBatch("hourly", 7, 1.0, 2.0, "unavailable", "s3cret-of-a-test")
            )
            exported.add_event("warning", "retrying", {"query": "hourly", "error": "no"})
            exported.add_event("info", "started", {"password": "s3cret-of-a-test"})
            exported.add_event("debug", "batch", {})
        spans, logs, found = receiver.spans(), receiver.logs(), receiver.metrics()
        assert receiver.headers["authorization"] == "Bearer of-a-test"

    root = next(span for span in spans if not span.parent_span_id)
    assert (root.name, len({span.trace_id for span in spans})) == ("batch hourly", 1)
    assert attributes(root) == {
        "penstock.pipeline": "shop", "penstock.run": "r1", "penstock.query": "hourly",
        "penstock.batch": 7, "penstock.rows": 3,
    }  # fmt: skip
    assert root.end_time_unix_nano - root.start_time_unix_nano == 10**9
    phases = [
        span for span in spans if span.parent_span_id == root.span_id and not span.status.code
    ]
    lengths = {p.name: (p.end_time_unix_nano - p.start_time_unix_nano) // 10**6 for p in phases}
    assert list(lengths) == ["offsets", "log", "planning", "processing", "commit"]
    assert abs(lengths["processing"] - 700) <= 1
    (write,) = (span for span in spans if span.name == "write out")
    assert attributes(write) == {"penstock.sink": "out", "penstock.rows": 3}
    (attempt,) = (span for span in spans if span.status.code == 2)
    assert attributes(attempt)["error.type"] == "unavailable"

    assert [record.body.string_value for record in logs] == ["retrying", "started"]
    assert (logs[0].trace_id, logs[0].span_id) == (root.trace_id, root.span_id)
    assert not logs[1].trace_id
    assert "s3cret-of-a-test" not in f"{logs}{spans}"

    assert found["penstock_rows"].sum.data_points[0].as_double == 5
    durations = found["penstock_batch_duration_seconds"].histogram.data_points[0]
    assert (durations.count, durations.sum, sum(durations.bucket_counts)) == (2, 2.0, 2)
    assert dict(zip(durations.explicit_bounds, durations.bucket_counts, strict=False))[1.0] == 2


def test_nothing_waits_for_an_endpoint_that_is_down() -> None:
    log = Events()
    with telemetry(f"http://127.0.0.1:{free_port()}", log, measured()) as exported:
        began = time.monotonic()
        for number in range(5000):
            exported.add_event("info", "started", {"number": number})
        added = time.monotonic() - began
        exported._export_metrics()
        exported._export_metrics()
    assert added < 4, "an event does not wait for the endpoint, whose exports take 5 s"
    assert log.found == [("warning", "telemetry not exported")]

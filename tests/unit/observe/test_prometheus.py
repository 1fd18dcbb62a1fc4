"""Metrics of a run as Prometheus reads them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from penstock.observe.execution import Execution
from penstock.observe.late import LateCount
from penstock.observe.metrics import Metrics, Observed, StateSize
from penstock.observe.progress import QueryProgress
from penstock.observe.prometheus import make_registry
from penstock.sdk.retained_log import RetainedLog

ORDERS = {"pipeline": "shop", "node": "orders", "kind": "source", "type": "kafka"}
OUT = {"pipeline": "shop", "node": "out", "kind": "sink", "type": "files"}
HOURLY = {"pipeline": "shop", "query": "hourly"}


def scrape(metrics: Metrics) -> dict[str, list[tuple[dict[str, str], float]]]:
    text = generate_latest(make_registry("shop", metrics)).decode()
    samples: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def test_labels_of_nodes() -> None:
    metrics = Metrics("r1", {"orders": {"team": "x"}, "out": {}})
    for name in ("orders", "out"):
        metrics.flow(name, "source", "kafka").add(1)
    registry = make_registry("shop", metrics)
    text = generate_latest(registry).decode()
    lines = [line for line in text.splitlines() if line.startswith("penstock_rows_total")]
    assert [('team="x"' in line, 'node="orders"' in line) for line in lines] == [
        (True, True), (False, False)
    ]  # fmt: skip


def event(seconds: float, watermark: datetime | None = None, late: int = 0) -> dict[str, object]:
    state = {"numRowsTotal": 4, "memoryUsedBytes": 900, "numRowsDroppedByWatermark": late}
    time_ = {} if watermark is None else {"watermark": watermark.isoformat()}
    return {
        "durationMs": {"triggerExecution": seconds * 1000},
        "stateOperators": [state, state],
        "eventTime": time_,
    }


def test_nodes_have_rows_bytes_lag_and_dead_letters() -> None:
    metrics = Metrics()
    source, sink = metrics.flow("orders", "source", "kafka"), metrics.flow("out", "sink", "files")
    parse = metrics.flow("parse", "transform", "sql")
    source.add(5)
    source.measure("copy", 7, "messages")
    source.lost, source.retained = 2, RetainedLog(4096, 70)
    sink.add(3)
    sink.bytes, parse.dead_letters = 120, 2
    found = scrape(metrics)
    assert found["penstock_rows_total"] == [(ORDERS, 5), (OUT, 3)]
    assert found["penstock_bytes_total"] == [(OUT, 120)]
    assert found["penstock_lag"] == [({**ORDERS, "unit": "messages"}, 7)]
    assert found["penstock_lost_messages_total"] == [(ORDERS, 2)]
    assert found["penstock_retained_log_bytes"] == [(ORDERS, 4096)]
    assert found["penstock_retained_log_seconds"] == [(ORDERS, 70)]
    assert [value for _, value in found["penstock_dead_letters_total"]] == [0, 0, 2]
    assert len(found["penstock_last_batch_time_seconds"]) == 2


def test_side_outputs_have_rows_missed_batches_and_failures() -> None:
    metrics = Metrics()
    metrics.side_outputs["audit"] = Observed(batches=3, rows=70, missed=2, failures=1)
    found, labels = scrape(metrics), {"pipeline": "shop", "side_output": "audit"}
    for name, value in (("rows", 70), ("batches", 3), ("missed", 2), ("failures", 1)):
        assert found[f"penstock_side_output_{name}_total"] == [(labels, value)]


def test_queries_have_durations_state_late_rows_and_a_watermark_delay() -> None:
    metrics = Metrics()
    watermark = datetime.fromtimestamp(time.time() - 100, UTC)
    progress = QueryProgress()
    for batch in (event(0.04), event(0.3, watermark, late=1), event(400.0, watermark, late=2)):
        progress = progress.add(batch)
    metrics.progress["hourly"] = progress
    metrics.queries |= {"hourly": Execution(), "daily": Execution()}
    metrics.late["hourly"] = LateCount(exact=True, nodes={"orders": 4, "payments": 0}, by_spark=6)
    metrics.late["daily"] = LateCount(exact=False, nodes={"orders": 0}, by_spark=6)
    found = scrape(metrics)
    assert found["penstock_batches_total"][0] == (HOURLY, 3)
    assert found["penstock_batch_duration_seconds_sum"][0] == (HOURLY, 400.34)
    assert ({**HOURLY, "phase": "other"}, 400.34) in found["penstock_batch_phase_seconds_total"]
    buckets = {
        labels["le"]: value
        for labels, value in found["penstock_batch_duration_seconds_bucket"]
        if labels["query"] == "hourly"
    }
    assert (buckets["0.05"], buckets["0.25"], buckets["0.5"]) == (1, 1, 2)
    assert (buckets["300.0"], buckets["+Inf"]) == (2, 3)
    assert found["penstock_late_rows_total"] == [
        ({**HOURLY, "node": "orders"}, 4),
        ({**HOURLY, "node": "payments"}, 0),
        ({"pipeline": "shop", "query": "daily", "node": ""}, 6),
    ]
    assert found["penstock_state_rows"] == [(HOURLY, 8)]
    assert found["penstock_state_bytes"] == [(HOURLY, 1800)]
    ((_, delay),) = found["penstock_watermark_delay_seconds"]
    assert 100 <= delay < 130


def test_a_query_without_event_time_and_state_has_neither() -> None:
    metrics = Metrics()
    first = {"durationMs": {}, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}
    metrics.progress["copy"] = QueryProgress().add(first)
    metrics.queries["copy"] = Execution()
    found = scrape(metrics)
    assert found["penstock_batches_total"] == [({"pipeline": "shop", "query": "copy"}, 1)]
    for name in ("watermark_delay_seconds", "state_rows", "late_rows_total"):
        assert f"penstock_{name}" not in found


def test_the_run_has_an_identity_restarts_and_failures() -> None:
    metrics = Metrics("r1")
    metrics.restarts = 3
    metrics.queries["hourly"] = Execution(state="failed", code="unavailable")
    found = scrape(metrics)
    ((labels, one),) = found["penstock_run_info"]
    assert (labels["pipeline"], labels["run"], one) == ("shop", "r1", 1)
    assert found["penstock_restarts_total"] == [({"pipeline": "shop"}, 3)]
    assert found["penstock_failures"] == [({"pipeline": "shop"}, 1)]
    assert set(found) >= {"penstock_run_start_time_seconds"}
    assert all(name.startswith("penstock_") for name in found)


def test_a_duration_at_a_bound_is_below_it() -> None:
    durations = QueryProgress().add(event(0.05)).add(event(300.0)).add(event(300.1)).durations
    assert (durations[0], durations[-2], durations[-1], sum(durations)) == (1, 1, 1, 3)


def test_the_state_of_a_query_is_that_of_spark_and_of_its_updating_transforms() -> None:
    metrics = Metrics()
    assert metrics.state("hourly") is None
    metrics.updating["hourly"] = StateSize(10, 100)
    assert metrics.state("hourly") == (10, 100)
    metrics.progress["hourly"] = QueryProgress().add(event(1.0))
    assert metrics.state("hourly") == (18, 1900)


def test_the_lag_of_a_source_is_that_of_the_query_that_is_behind() -> None:
    flow = Metrics().flow("orders", "source", "kafka")
    assert flow.lag is None
    for query, unread in (("copy", 7), ("hourly", 5)):
        flow.measure(query, unread, "records")
    flow.pending = 2
    assert flow.lag == 9

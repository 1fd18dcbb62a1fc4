"""Metrics of the server: history and batches by the API, and all of them for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from otlp_receiver import Receiver, attributes, otlp_receiver
from penstock.core.log import Silent
from server_console import Console, OpenConsole, wait_for

if TYPE_CHECKING:
    from penstock.server.settings import Settings
    from penstock.server.workers.pool import WorkerPool

pytestmark = pytest.mark.slow


def start(console: Console) -> str:
    id = console.id()
    console.post(f"pipelines/{id}/start")
    console.await_health("running")
    return id


def scrape(console: Console) -> dict[tuple[str, ...], float]:
    families = list(text_string_to_metric_families(console.client.get("/metrics").text))
    assert all(family.documentation and family.type != "unknown" for family in families)
    assert len({family.name for family in families}) == len(families)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_history_batches_and_prometheus(open_console: OpenConsole) -> None:
    console = open_console()
    id = start(console)
    found = scrape(console)
    by_name: dict[str, list[float]] = {}
    for (name, *_), value in found.items():
        by_name.setdefault(name, []).append(value)
    assert by_name["penstock_rows_total"] == [3, 3]
    assert by_name["penstock_bytes_total"] == [120]
    assert by_name["penstock_dead_letters_total"] == [2, 0]
    assert by_name["penstock_lag"] == [7]
    assert by_name["penstock_batches_total"] == [2]
    assert by_name["penstock_batch_duration_seconds_count"] == [2]
    assert by_name["penstock_batch_duration_seconds_sum"] == [3]
    assert (by_name["penstock_state_rows"], by_name["penstock_state_bytes"]) == ([4], [900])
    assert (by_name["penstock_restarts_total"], by_name["penstock_failures"]) == ([1], [0])
    assert 60 <= by_name["penstock_watermark_delay_seconds"][0] < 90
    assert by_name["penstock_late_rows_total"] == [1]
    assert len(by_name["penstock_batch_phase_seconds_total"]) == 6
    assert sum(by_name["penstock_pipeline_state"]) == 1

    first = _history(console, id)
    kinds = {(each["metric"], each["scope"], each["name"]) for each in first["series"]}
    assert ("lag", "node", "orders") in kinds
    assert ("state_rows", "query", "orders") in kinds
    assert ("rows_per_second", "pipeline", None) in kinds
    lag = next(each for each in first["series"] if each["metric"] == "lag")
    assert (lag["unit"], [each for each in lag["values"] if each is not None]) == ("records", [7])
    assert len(lag["values"]) == len(lag["most"]) == -(-(first["end"] - first["start"]) // 10)

    page = console.get(f"pipelines/{id}/batches", params={"limit": 1})
    (last,) = page["batches"]
    assert (last["query"], last["batch"], last["rows"], last["seconds"]) == ("orders", 1, 3, 1.5)
    assert (last["phases"]["processing"], last["phases"]["log"]) == (1.2, 0.05)
    assert last["sinks"]["out"]["rows"] == 3 and last["watermark"] == last["began"]
    end = console.get(f"pipelines/{id}/batches", params={"before": page["next"], "query": "orders"})
    assert ([each["batch"] for each in end["batches"]], end["next"]) == ([0], None)
    assert console.get(f"pipelines/{id}/batches", params={"query": "x"})["batches"] == []

    console = open_console()  # a restart of the server
    again = console.get(f"pipelines/{id}/metrics", params={"window": "5m", "series": "lag"})
    assert {each["metric"] for each in again["series"]} == {"lag"}
    assert 7 in again["series"][0]["values"]
    throughput = console.get("throughput")
    assert [each["id"] for each in throughput] == [id]

    console.post(f"pipelines/{id}/stop")
    console.await_health("stopped")
    stopped = {name for name, *_ in scrape(console)}
    assert "penstock_rows_total" in stopped
    assert not stopped & {"penstock_lag", "penstock_watermark_delay_seconds", "penstock_run_info"}


def _history(console: Console, id: str) -> Any:
    console.server.parts.history.record(time.time())
    return wait_for(
        lambda: console.get(f"pipelines/{id}/metrics", params={"window": "5m"}), lambda: "no answer"
    )


def test_invalid_questions_and_the_schema(console: Console) -> None:
    id = console.id()
    for query in (
        "window=0s", "window=31d", "window=soon", "window=5", "resolution=x", "end=nan",
        "end=1e300", "series=lags",
    ):  # fmt: skip
        answer = console.client.get(f"/api/v1/pipelines/{id}/metrics?{query}")
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "invalid-request")
    assert console.client.get("/api/v1/pipelines/none/metrics").status_code == 404
    assert console.client.get("/api/v1/pipelines/none/batches").status_code == 404
    assert console.get(f"pipelines/{id}/metrics", params={"end": 5})["series"] == []
    paths = console.get("openapi.json")["paths"]
    content = paths["/api/v1/pipelines/{id}/metrics"]["get"]["responses"]["200"]["content"]
    assert content["application/json"]["schema"]["$ref"].endswith("/MetricHistory")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with otlp_receiver() as started:
        yield started


@pytest.fixture
def exporting_settings(server_settings: Settings, receiver: Receiver) -> Settings:
    return replace(server_settings, otlp_endpoint=receiver.url)


def test_the_server_exports_health_requests_and_its_log(
    exporting_settings: Settings, server_workers: WorkerPool, receiver: Receiver
) -> None:
    from fastapi.testclient import TestClient

    from penstock.server.api.application import make_application
    from penstock.server.server import child_environment, open_server

    with open_server(exporting_settings, Silent(), server_workers) as server:
        wait_for(lambda: server.parts.views.ready, lambda: "the server is not ready")
        client = TestClient(make_application(server.parts), base_url="http://localhost")
        assert client.get("/api/v1/pipelines/none/metrics?token=secret").status_code == 401
        server.parts.log.warning("a warning of a test")
    environment = child_environment(exporting_settings, {})
    assert environment["PENSTOCK_OTLP_ENDPOINT"] == receiver.url
    points = receiver.metrics()["penstock_pipeline_state"].gauge.data_points
    assert sum(point.as_double for point in points) == 1
    (span,) = receiver.spans()
    assert (span.name, attributes(span)["http.response.status_code"]) == (
        "GET /api/v1/pipelines/{id}/metrics", 401,
    )  # fmt: skip
    assert [each.body.string_value for each in receiver.logs()] == ["a warning of a test"]


def test_two_pipelines_of_one_name_have_their_files_as_labels(console: Console) -> None:
    directory = console.server.parts.settings.directory
    (directory / "other").mkdir()
    text = (directory / "shop" / "shop.yaml").read_text()
    (directory / "other" / "shop.yaml").write_text(text)
    wait_for(lambda: len(console.get("pipelines")) == 2, lambda: "the pipeline is missing")
    labels = {labels[0] for name, *labels in scrape(console) if name == "penstock_pipeline_state"}
    assert labels == {"shop/shop.yaml", "other/shop.yaml"}

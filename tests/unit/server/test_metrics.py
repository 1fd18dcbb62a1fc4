"""Metrics of the server: history and batches by the API, and all of them for Prometheus."""

from __future__ import annotations

import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server_console import Console, OpenConsole, wait_for

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


def test_two_pipelines_of_one_name_have_their_files_as_labels(console: Console) -> None:
    directory = console.server.parts.settings.directory
    (directory / "other").mkdir()
    text = (directory / "shop" / "shop.yaml").read_text()
    (directory / "other" / "shop.yaml").write_text(text)
    wait_for(lambda: len(console.get("pipelines")) == 2, lambda: "the pipeline is missing")
    labels = {labels[0] for name, *labels in scrape(console) if name == "penstock_pipeline_state"}
    assert labels == {"shop/shop.yaml", "other/shop.yaml"}

"""A real Prometheus scrapes the metrics of a server, and `promtool` accepts their form."""

from __future__ import annotations

import pytest

from penstock.server.server import TOKEN_FILE
from server_console import Console, wait_for
from servers.prometheus import Prometheus, check_metrics
from web_console import listening

pytestmark = pytest.mark.slow


def test_prometheus_scrapes_the_server(console: Console) -> None:
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    token = (console.server.parts.settings.data / TOKEN_FILE).read_text()
    with listening(console) as address, Prometheus(address.removeprefix("http://"), token) as it:
        lags = wait_for(lambda: it.query("penstock_lag"), lambda: str(it.targets()))
        ((labels, lag),) = lags
        assert (labels["pipeline"], labels["node"], labels["job"], lag) == (
            "shop", "orders", "penstock", 7,
        )  # fmt: skip
        (target,) = it.targets()
        assert (target["health"], target["lastError"]) == ("up", "")
        median = "histogram_quantile(0.5, penstock_batch_duration_seconds_bucket)"
        assert [value for _, value in it.query(median) if value > 0]
    assert check_metrics(console.client.get("/metrics").text) == (0, "")


def test_a_wrong_token_is_an_error_of_the_target(console: Console) -> None:
    with listening(console) as address, Prometheus(address.removeprefix("http://"), "none") as it:
        targets = wait_for(
            lambda: [each for each in it.targets() if each["health"] != "unknown"],
            lambda: str(it.targets()),
        )
        assert [(each["health"], each["lastError"]) for each in targets] == [
            ("down", "server returned HTTP status 401 Unauthorized")
        ]
        assert it.query("penstock_lag") == []

"""The dashboard for Grafana names only metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from penstock.observe.prometheus import Measured, run_families
from stand_in_run import snapshot

DASHBOARD = Path(__file__).parents[3] / "examples" / "grafana" / "penstock.json"
OF_THE_SERVER = {"penstock_pipeline_state": {"pipeline", "state"}}


def expressions(part: Any) -> Iterator[str]:
    """Yields all expressions of a dashboard."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name in ("expr", "query") and isinstance(value, str) and "penstock" in value:
                yield value
            yield from expressions(value)
    elif isinstance(part, list):
        for each in part:
            yield from expressions(each)


def existing() -> dict[str, set[str]]:
    """Returns the labels of each metric of a run."""

    class Collector:
        def collect(self) -> Iterator[Any]:
            return run_families([Measured("shop", snapshot("r1", 0.0))])  # type: ignore[arg-type]

    registry = CollectorRegistry()
    registry.register(Collector())  # type: ignore[arg-type]
    text = generate_latest(registry).decode()
    return OF_THE_SERVER | {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_dashboard_names_metrics_and_labels_that_exist() -> None:
    dashboard, known = json.loads(DASHBOARD.read_text()), existing()
    found = list(expressions(dashboard))
    assert len(found) >= len(dashboard["panels"]) >= 10
    for expression in found:
        metrics = set(re.findall(r"\bpenstock_\w+", expression))
        assert metrics and metrics <= known.keys(), expression
        labels = set().union(*(known[name] for name in metrics)) | {"le"}
        used = re.findall(r"(\w+)=~?\"", expression)
        for group in re.findall(r"by \(([^)]*)\)", expression):
            used += group.split(", ")
        assert set(used) <= labels, expression


def test_each_panel_is_a_question_in_a_place_of_its_own() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert all(panel["title"].endswith("?") for panel in panels)
    places = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places)) and max(x for x, _ in places) < 24

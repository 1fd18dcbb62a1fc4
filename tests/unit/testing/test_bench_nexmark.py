"""The option `--batches` of the bench `nexmark`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import app

ROOT = Path(__file__).parents[3]
COUNTS = {"person": 23, "auction": 64, "bid": 924}


@pytest.fixture
def nexmark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The program, whose modules have general names and are removed afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(ROOT / "bench")
    yield importlib.import_module("nexmark")
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "bench")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (0, {"person": None, "auction": None, "bid": None}),
        (1, COUNTS),
        (10, {"person": 3, "auction": 7, "bid": 93}),
        (1000, {"person": 1, "auction": 1, "bid": 1}),
    ],
)
def test_a_batch_reads_a_part_of_each_topic(
    nexmark: Any, parts: int, expected: dict[str, int | None], tmp_path: Path
) -> None:
    limits = nexmark.batch_limits(COUNTS, parts)
    place = nexmark.Place("broker:9092", tmp_path, tmp_path / "side", limits)
    place.state.mkdir()
    found = {}
    for query in ("q0", "q3", "q9"):
        plan = app.plan(Path(nexmark.script(place, query, f"penstock-{query}-0")))
        for node in plan.of("source"):
            config: Any = node.component.config
            found[config.topic] = config.max_records
            assert config.brokers == "broker:9092"
    assert found == expected


def test_the_cost_of_a_batch(nexmark: Any, tmp_path: Path) -> None:
    assert nexmark.batches(tmp_path) == 0
    for query, count in (("first", 3), ("second", 12)):
        commits = tmp_path / ".penstock/q9/checkpoints" / query / "commits"
        commits.mkdir(parents=True)
        for number in range(count):
            (commits / str(number)).touch()
            (commits / f".{number}.crc").touch()
    assert nexmark.batches(tmp_path) == 12
    run = {
        "events_per_second": 1000.0, "seconds": 1.0, "cpu": 3.0, "state_mb": 0.0, "rows": 5,
        "batches": 12,
    }  # fmt: skip
    result = {
        "events": 1000, "engines": {"penstock": {"q9": run}}, "skipped": {}, "failed": {},
        "differ": {}, "ratio_cpu": {},
    }  # fmt: skip
    assert "penstock q9: 12 batches, 250 CPU ms each" in nexmark.table(result)
    whole = {**result, "engines": {"penstock": {"q9": {**run, "batches": 1}}}}
    assert not any("CPU ms each" in line for line in nexmark.table(whole))

"""Workers end when they are idle, and another one starts for the next request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.server.api.events import _changes
from penstock.server.workers.pool import WorkerPool
from server_console import PIPELINE

pytestmark = pytest.mark.slow


def test_idle_workers_end(tmp_path: Path) -> None:
    pool, text = WorkerPool(2, os.environ), PIPELINE.format(name="shop")
    file = tmp_path / "shop.yaml"
    try:
        assert not pool.call("describe", file, text=text)["errors"]
        pool.end_idle(600)
        (kept,) = pool._workers
        pool.end_idle(0)
        assert kept.ended and not pool._workers
        assert pool.call("describe", file, text=text)["name"] == "shop"
        assert len(pool._workers) == 1
    finally:
        pool.close()


def test_time_of_an_operation_begins_when_the_process_is_ready(tmp_path: Path) -> None:
    """A busy machine starts a process slowly, which is no fault of the operation."""
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(9)\n")
    pool = WorkerPool(1, {**os.environ, "PYTHONPATH": str(tmp_path)})
    text = PIPELINE.format(name="shop")
    try:
        file = tmp_path / "shop.yaml"
        assert pool.call("describe", file, text=text, timeout=8)["name"] == "shop"
    finally:
        pool.close()


def test_events_have_the_changed_fields_only() -> None:
    known: dict[str, dict[str, Any]] = {
        "a": {"id": "a", "lag": 1, "health": {"state": "idle"}},
        "b": {"id": "b", "lag": 1},
    }
    current: dict[str, dict[str, Any]] = {
        "a": {"id": "a", "lag": 2, "health": {"state": "idle"}}, "b": {"id": "b", "lag": 1},
        "c": {"id": "c", "lag": None},
    }  # fmt: skip
    assert list(_changes(known, current)) == [{"id": "a", "lag": 2}, {"id": "c", "lag": None}]

"""A server that is killed with its runs, amid requests, loses no wish, version or run."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_server import kill_server

pytestmark = pytest.mark.chaos


def test_ten_pipelines(tmp_path: Path) -> None:
    kill_server(tmp_path, pipelines=10, steps=9, seed=2)

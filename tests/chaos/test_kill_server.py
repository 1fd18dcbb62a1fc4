"""A server that is killed with its runs, amid requests, loses no wish, version or run."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_server import kill_server

pytestmark = pytest.mark.chaos


def test_four_pipelines(tmp_path: Path) -> None:
    """The seed has a kill amid a new text, a killed run, and a kill of both amid a restart."""
    kill_server(tmp_path, pipelines=4, steps=8, seed=380)

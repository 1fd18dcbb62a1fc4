"""Plugin of pytest: ends the tests unless Penstock is loaded from `PLANTED_SOURCE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

WRONG_COPY = 70
"""The exit code of tests of another copy."""


def pytest_collection_finish() -> None:
    """Checks the modules that the tests have imported."""
    source = Path(os.environ["PLANTED_SOURCE"])
    files = [
        Path(module.__file__ or "")
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in ("penstock", "pyspark_penstock")
    ]
    others = [file for file in files if not file.is_relative_to(source)]
    if others or not files:
        pytest.exit(f"expected modules of {source}, found {others[:3]}", returncode=WRONG_COPY)

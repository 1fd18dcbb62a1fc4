from __future__ import annotations

import pytest
from line_and_block_formats import Blocks, Lines

from penstock.sdk import Config


@pytest.fixture
def lines() -> Lines:
    return Lines(Config())


@pytest.fixture
def blocks() -> Blocks:
    return Blocks(Config())

"""A run that is killed again and again loses nothing and repeats nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_anywhere import kill_anywhere
from moments import MOMENTS

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


def test_at_random_moments(tmp_path: Path) -> None:
    kill_anywhere(tmp_path, kills=3, records=10_000, seed=7)


def test_at_every_moment_that_matters(tmp_path: Path) -> None:
    kill_anywhere(tmp_path, kills=0, records=2_000, seed=7, moments=list(MOMENTS))

"""A run that is killed again and again loses nothing and repeats nothing."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from deaths import Killed, mortal
from kill_anywhere import kill_anywhere
from moments import BEFORE_THE_LEDGER, MOMENTS
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.chaos, pytest.mark.spark]


def test_at_every_moment_that_matters(tmp_path: Path, penstock_spark: SparkSession) -> None:
    """Torn files are found before the ledger, too."""
    moments = [name for name, moment in MOMENTS.items() if moment is not BEFORE_THE_LEDGER]
    kill_anywhere(tmp_path, kills=0, records=3_000, seed=3, moments=moments, spark=penstock_spark)


def test_a_dead_process_changes_nothing(tmp_path: Path) -> None:
    """Cleanup code has no effect after a kill."""
    (tmp_path / "there").touch()
    with mortal(tmp_path) as death:
        with suppress(Killed):
            death.die()
        for change in (
            lambda: (tmp_path / "new").write_text("late"),
            lambda: (tmp_path / "there").unlink(),
            lambda: (tmp_path / "there").replace(tmp_path / "moved"),
            lambda: (tmp_path / "directory").mkdir(),
            lambda: shutil.rmtree(tmp_path),
        ):
            with pytest.raises(Killed):
                change()
        assert (tmp_path / "there").read_text() == ""
    assert [path.name for path in tmp_path.iterdir()] == ["there"]

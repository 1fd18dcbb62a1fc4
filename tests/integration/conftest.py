"""What the tests of several connectors share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from taking import Take, Taking

if TYPE_CHECKING:
    from pipelines import Workspace
    from pyspark.sql import SparkSession

    from penstock.runtime.handle import RunHandle


@pytest.fixture
def taking() -> Iterator[Take]:
    """`taking(source)` receives until the end of the test."""
    running: list[Taking] = []

    def taking(source: Any, kind: type[Taking] = Taking) -> Any:
        running.append(kind(source))
        return running[-1]

    yield taking
    for each in running:
        each.receiving.close()


@pytest.fixture
def workspace(tmp_path: Path, penstock_spark: SparkSession) -> Iterator[Workspace]:
    """An empty directory in which pipelines run in the Spark session of the tests."""
    from pipelines import Workspace

    workspace = Workspace(tmp_path, penstock_spark)
    yield workspace
    workspace.close()


@pytest.fixture
def handles() -> Iterator[list[RunHandle]]:
    """Runs in the background, which are stopped at the end of the test."""
    started: list[RunHandle] = []
    yield started
    for handle in started:
        handle.stop()
        handle.wait(60)

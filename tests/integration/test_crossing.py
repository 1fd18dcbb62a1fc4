"""Rows of every type from system to system, with all values compared.

The systems here need no server; the tests of other systems call `by_hand.check`. The program
`tests/crossing/__main__.py` has all pairs of systems.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crossing import by_hand, systems
from crossing.pipeline import crossings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINKS = 2
"""The number of sinks of each system."""


@pytest.mark.parametrize("number", range(9))
def test_values_of_a_system(number: int, tmp_path: Path) -> None:
    system = systems.without_server(tmp_path / "data")[number]
    assert by_hand.check(system, tmp_path / "work") == []


@pytest.mark.spark
def test_rows_from_system_to_system(tmp_path: Path, penstock_spark: SparkSession) -> None:
    for crossing in crossings(tmp_path, systems.without_server(tmp_path / "data"), SINKS):
        assert crossing.run(penstock_spark) == {sink.name: [] for sink in crossing.sinks}

"""For pytest: one small Spark for all tests that ask for it. The package's plugin.

import pytest
from penstock.testing.suite import cases

@pytest.mark.parametrize("case", cases("pipeline.yaml"), ids=str)
def test_pipeline(case, penstock_spark):
    case.check(penstock_spark)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    """Makes the contract's marker known."""
    config.addinivalue_line("markers", "spark: needs a Spark session")


@pytest.fixture(scope="session")
def penstock_spark() -> Iterator[SparkSession]:
    """A Spark session that all tests share, started when the first one needs it.

    Use `penstock_spark.newSession()` for settings and temporary views of a test's own.
    """
    from penstock.testing.suite import session

    with session() as spark:
        yield spark

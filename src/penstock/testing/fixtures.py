"""Plugin of pytest: a Spark session for all tests.

import pytest
from penstock.testing.suite import load_cases

@pytest.mark.parametrize("case", load_cases("pipeline.yaml"), ids=str)
def test_pipeline(case, penstock_spark):
    case.check(penstock_spark)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of tests that start Spark."""
    config.addinivalue_line("markers", "spark: needs a Spark session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Removes tests of the contract that do not apply to a component."""
    if "penstock.testing.contract" in sys.modules:
        from penstock.testing.contract.applies import applicable

        items[:] = applicable(items)


@pytest.fixture(scope="session")
def penstock_spark() -> Iterator[SparkSession]:
    """Yields a Spark session for all tests, started at its first use.

    Use `penstock_spark.newSession()` for settings and temporary views of a single test.
    """
    from penstock.testing.suite import case_session

    with case_session() as spark:
        yield spark

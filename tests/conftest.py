"""What the tests of all rooms share."""

from __future__ import annotations

import os

import pytest

pytest_plugins = [
    "penstock.testing.fixtures",
    *(
        f"servers.{name}"
        for name in (
            "apicurio",
            "aws",
            "kafka",
            "modbus",
            "mosquitto",
            "nats",
            "peer",
            "pulsar",
            "pushing",
            "rabbitmq",
            "redis",
            "s3",
            "web",
        )
    ),
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that start a server: those of modules that import one."""
    for item in items:
        names = vars(getattr(item, "module", None) or object).values()
        if any(str(getattr(each, "__module__", "")).startswith("servers.") for each in names):
            item.add_marker("server")


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In CI a failure is told at once: a run that is cut off tells nothing at its end."""
    if report.failed and os.environ.get("CI") and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\n{report.nodeid} failed in {report.when}:\n{report.longreprtext}", flush=True)

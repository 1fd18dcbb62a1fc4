"""What the tests of all rooms share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from penstock.core.known_secrets import forget_secrets
from penstock.sdk.clients import close_pools

# Each Java that a test starts runs for seconds, of which the C2 compiler would use a third.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")

pytest_plugins = [
    "costs",
    "distribution",
    "quick_cases",
    "penstock.testing.fixtures",
    "command_line",
    "server_console",
    "web_console",
    *(
        f"servers.{name}"
        for name in (
            "apicurio",
            "aws",
            "azurite",
            "clickhouse",
            "ferretdb",
            "gcs",
            "iceberg_rest",
            "influxdb",
            "kafka",
            "mariadb",
            "mongodb",
            "modbus",
            "mosquitto",
            "nats",
            "opensearch",
            "elasticsearch",
            "peer",
            "postgres",
            "pulsar",
            "pushing",
            "rabbitmq",
            "redis",
            "s3",
            "spark",
            "web",
        )
    ),
]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Collects without a search for garbage. Later searches leave the collected objects out."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _no_known_secrets() -> Iterator[None]:
    """Forgets the secrets of a test: messages of later tests may contain the same words."""
    yield
    forget_secrets()


_kafka_clients = 0
"""The number of clients of Kafka after the last module."""


@pytest.fixture(autouse=True, scope="module")
def _no_clients() -> Iterator[None]:
    """Closes the clients that a module leaves in pools, and frees those of Kafka that are garbage.

    Each has threads. Those of Kafka connect to the broker again and again after its end.
    """
    from servers.kafka import count_clients

    global _kafka_clients
    yield
    close_pools()
    if count_clients() > _kafka_clients:
        gc.collect()
        _kafka_clients = count_clients()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Prints failures at once in CI; a killed run has no summary."""
    if report.failed and os.environ.get("CI") and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\n{report.nodeid} failed in {report.when}:\n{report.longreprtext}", flush=True)

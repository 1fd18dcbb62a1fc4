"""What the tests of all rooms share."""

from __future__ import annotations

import pytest

pytest_plugins = ["penstock.testing.fixtures", "servers.kafka", "servers.s3"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that start a server: those of modules that import one."""
    for item in items:
        names = vars(getattr(item, "module", None) or object).values()
        if any(str(getattr(each, "__module__", "")).startswith("servers.") for each in names):
            item.add_marker("server")

"""The order of the tests, and their groups under `--dist loadgroup`: a server starts once per run.

The modules that use a kind of server are one group, all other modules one each. Groups that take
long come first, so that no worker is left with one at the end. Tests with servers often wait, and
others compute, so the groups of servers are spread over the others. A server is closed after the
last test of its group. Tests that use a server get the marker `server`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

import pytest

SERVERS = {
    "kafka": ("kafka", "breakable_kafka_server", "own_kafka"),
    "pulsar": ("pulsar",),
    "apicurio": ("apicurio",),
    "iceberg_rest": ("iceberg_rest",),
    "opensearch": ("opensearch", "elasticsearch"),
    "rabbitmq": ("rabbitmq",),
    "nats": ("nats",),
    "redis": ("redis", "redis_cluster"),
    "aws": ("aws", "s3", "gcs", "azurite"),
    "mosquitto": ("mosquitto",),
    "clickhouse": ("clickhouse",),
    "ferretdb": ("ferretdb",),
    "mongodb": ("replica_set",),
    "influxdb": ("influxdb", "victoria_metrics"),
    "postgres": ("postgres",),
    "mariadb": ("mariadb",),
}
"""Fixtures by kind of server, the most expensive kind first."""
LIGHT = ("browser", "modbus", "peer_program", "pushing", "web_server")
"""Fixtures of servers that each process may start."""
SERVER_FIXTURES = {*LIGHT, *(name for names in SERVERS.values() for name in names)}
DIRECTORIES = ("chaos", "docs", "golden", "integration", "contract", "unit")
"""Below `tests/`, from those whose modules take longest."""


class Distribution:
    """The group of each item, and the servers that are running."""

    def __init__(self) -> None:
        self._groups: dict[PurePath, str] = {}
        self._finish: dict[str, list[Callable[[], None]]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        fixtures: dict[PurePath, set[str]] = {}
        for item in items:
            fixtures.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
        self._groups = {path: _group(path, names) for path, names in fixtures.items()}
        ranks = module_places(self._groups)
        items.sort(key=lambda item: ranks[item.path])
        for item in items:
            item.add_marker(pytest.mark.xdist_group(self._groups[item.path]))
            if _uses_server(item):
                item.add_marker("server")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Raises an error if the groups have no effect: pytest-xdist reads them from names."""
        grouped = getattr(session.config.option, "loadgroup", False)
        if grouped and not all("@" in item.nodeid for item in session.items):
            raise pytest.UsageError("this pytest-xdist does not group tests with this pytest")

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        for kind, names in SERVERS.items():
            if fixturedef.argname in names and fixturedef.scope == "session":
                self._finish.setdefault(kind, []).append(lambda: fixturedef.finish(request))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        yield
        group = self._groups.get(item.path, "")
        if nextitem is None or self._groups.get(nextitem.path) != group:
            for finish in self._finish.pop(group, ()):
                finish()


def _uses_server(item: pytest.Item) -> bool:
    """Whether a test asks for a server, or stands in a module that imports one."""
    if SERVER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
        return True
    return _imports_server(getattr(item, "module", None))


@cache
def _imports_server(module: object) -> bool:
    names = vars(module or object).values()
    return any(str(getattr(each, "__module__", "")).startswith("servers.") for each in names)


def _group(path: PurePath, fixtures: set[str]) -> str:
    """The most expensive kind of server that a module uses, or its own name."""
    return next((kind for kind, names in SERVERS.items() if fixtures & {*names}), _name(path))


def _name(path: PurePath) -> str:
    return "/".join((*path.parts[-2:-1], path.stem))


def module_places(groups: Mapping[PurePath, str]) -> dict[PurePath, tuple[float, int]]:
    """Returns the place of each module: that of its group, and there that of its directory.

    Contracts, which kill their servers, are the last of a group.
    """
    alone = sorted((path for path in groups if groups[path] not in SERVERS), key=_directory)
    places: dict[str, float] = {groups[path]: place for place, path in enumerate(alone)}
    slow = sum(_directory(path) < DIRECTORIES.index("unit") for path in alone)
    places |= {kind: place * slow / len(SERVERS) - 0.5 for place, kind in enumerate(SERVERS)}
    return {path: (places[group], _directory(path)) for path, group in groups.items()}


def _directory(path: PurePath) -> int:
    """Returns the place of the directory of a module in `DIRECTORIES`."""
    places = [DIRECTORIES.index(part) for part in path.parts if part in DIRECTORIES]
    return places[-1] if places else len(DIRECTORIES)


def pytest_configure(config: pytest.Config) -> None:
    """Orders the tests of this process."""
    config.pluginmanager.register(Distribution(), "distribution-by-server")

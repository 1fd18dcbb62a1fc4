"""InfluxDB 1.6, and VictoriaMetrics, which takes the writes of InfluxDB 2 as well."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from servers.install import program
from servers.server import Server, free_port

USER, PASSWORD = "made-up-user", "made-up-password"
_SETTINGS = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{data}/meta"
[data]
  dir = "{data}/data"
  wal-dir = "{data}/wal"
  index-version = "inmem"
[http]
  bind-address = "127.0.0.1:{port}"
  auth-enabled = true
  log-enabled = false
  max-body-size = 1000000
[monitor]
  store-enabled = false
"""


class Influxdb(Server):
    """InfluxDB 1 at `url`, for USER with PASSWORD."""

    name = "influxdb"
    title = "InfluxDB 1.6 (Debian 12)"

    def command(self) -> Sequence[str]:
        """With its settings."""
        data = self.directory.path
        settings = data / "influxdb.conf"
        settings.write_text(_SETTINGS.format(port=self.port, data=data, rpc=free_port()))
        return [program("influxd", "influxdb"), "-config", str(settings)]

    def ready(self) -> None:
        """Creates the user."""
        self.query(f"CREATE USER \"{USER}\" WITH PASSWORD '{PASSWORD}' WITH ALL PRIVILEGES")

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def login(self) -> dict[str, Any]:
        """The options of the sink that connect."""
        return {"url": self.url, "auth": {"username": USER, "password": PASSWORD}}

    def create_database(self) -> str:
        """Returns a new database."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.query(f'CREATE DATABASE "{name}"')
        return name

    def query(self, text: str, database: str = "") -> list[dict[str, Any]]:
        """Returns the series of a query, with times in nanoseconds."""
        named = {"db": database, "epoch": "ns", "u": USER, "p": PASSWORD}
        address = f"{self.url}/query?{urllib.parse.urlencode(named)}"
        body = urllib.parse.urlencode({"q": text}).encode()
        with urllib.request.urlopen(address, body, timeout=30) as response:
            (result,) = json.load(response, parse_int=_number)["results"]
        if "error" in result:
            raise RuntimeError(result["error"])
        series: list[dict[str, Any]] = result.get("series", [])
        return series


def _number(text: str) -> int | float:
    """Returns an integer. InfluxDB writes the float -0.0 as -0."""
    return -0.0 if text == "-0" else int(text)


class VictoriaMetrics(Server):
    """VictoriaMetrics at `url`: writes of InfluxDB 2, without buckets and tokens."""

    name = "victoria-metrics"
    title = "VictoriaMetrics 1.79 (Debian 12), in place of InfluxDB 2"

    def command(self) -> Sequence[str]:
        """With all data in its directory."""
        return [
            program("victoria-metrics", "victoria-metrics"),
            f"-storageDataPath={self.directory.path / 'data'}",
            f"-httpListenAddr=127.0.0.1:{self.port}",
            "-retentionPeriod=100y", "-search.latencyOffset=0s", "-search.disableCache",
        ]  # fmt: skip

    def ready(self) -> None:
        """Asks for its health."""
        urllib.request.urlopen(f"{self.url}/health", timeout=5).close()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def values(self, name: str) -> list[dict[str, Any]]:
        """Returns the series of a metric, which is a measurement and a field."""
        urllib.request.urlopen(f"{self.url}/internal/force_flush", timeout=30).close()
        named = urllib.parse.urlencode({"match[]": f'{{__name__="{name}"}}'})
        with urllib.request.urlopen(f"{self.url}/api/v1/export?{named}", timeout=30) as response:
            return [json.loads(line) for line in response]


@pytest.fixture(scope="session")
def influxdb() -> Iterator[Influxdb]:
    """One InfluxDB for all tests that ask for it."""
    with Influxdb() as server:
        yield server


@pytest.fixture(scope="session")
def victoria_metrics() -> Iterator[VictoriaMetrics]:
    """One VictoriaMetrics for all tests that ask for it."""
    with VictoriaMetrics() as server:
        yield server

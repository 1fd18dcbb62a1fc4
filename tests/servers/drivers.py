"""Drivers of JDBC, fetched once per machine; that of Derby is part of PySpark."""

from __future__ import annotations

from pathlib import Path

from penstock.core.java import spark_home
from servers.install import installed, program, run

H2 = "com.h2database:h2:2.4.240"
HSQLDB = "org.hsqldb:hsqldb:2.7.4"
POSTGRES = "org.postgresql:postgresql:42.7.8"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def driver(package: str) -> str:
    """The jar of a Maven package without dependencies."""

    def fill(part: Path) -> None:
        run(program("mvn", "maven"), "-q", "-B", _COPY, f"-Dartifact={package}",
            f"-DoutputDirectory={part}")  # fmt: skip

    (jar,) = installed(package.replace(":", "-"), fill).glob("*.jar")
    return str(jar)


def derby() -> list[str]:
    """The jars of Derby."""
    jars = spark_home() / "jars"
    return [str(jar) for name in ("derby-1", "derbyshared-1") for jar in jars.glob(f"{name}*.jar")]

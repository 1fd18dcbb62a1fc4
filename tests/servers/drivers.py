"""Drivers of JDBC, fetched once per machine; that of Derby is part of PySpark."""

from __future__ import annotations

from penstock.core.java import spark_home
from servers.install import installed
from servers.maven import fetch

H2 = "com.h2database:h2:2.4.240"
HSQLDB = "org.hsqldb:hsqldb:2.7.4"
POSTGRES = "org.postgresql:postgresql:42.7.8"
MYSQL = "com.mysql:mysql-connector-j:9.4.0"
MARIADB = "org.mariadb.jdbc:mariadb-java-client:3.5.6"


def driver(package: str) -> str:
    """The jar of a Maven package without dependencies."""
    home = installed(package.replace(":", "-"), lambda part: fetch(package, part))
    (jar,) = home.glob("*.jar")
    return str(jar)


def derby() -> list[str]:
    """The jars of Derby."""
    jars = spark_home() / "jars"
    return [str(jar) for name in ("derby-1", "derbyshared-1") for jar in jars.glob(f"{name}*.jar")]

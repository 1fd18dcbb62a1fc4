"""The JVM of this process, which JPype starts on first use."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from penstock.core.errors import MissingExtra, PenstockError, UserError
from penstock.core.java import Java, find

EXTRA = "jdbc"
_FLAGS = (
    "-Xrs",  # Python handles signals.
    "-Duser.timezone=UTC",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--enable-native-access=ALL-UNNAMED",
)
_LIBRARIES = {"darwin": "lib/server/libjvm.dylib", "win32": "bin/server/jvm.dll"}
_started_by: int | None = None
_lock = threading.Lock()


def start() -> None:
    """Starts the JVM unless it runs. Raises MissingExtra without JPype, UserError without Java."""
    global _started_by
    if _started_by == os.getpid():
        return
    try:
        import jpype
        import jpype.config
    except ImportError:
        raise MissingExtra.of(EXTRA, "jpype") from None
    with _lock:
        if jpype.isJVMStarted() and _started_by is None:
            _started_by = os.getpid()  # Another library of the process has started it.
        if _started_by == os.getpid():
            return
        if _started_by is not None:
            raise PenstockError(
                "Java cannot be used in a fork of a process that has started it",
                code="java-not-started",
            )
        # At the end of the process Java would wait for the threads of drivers.
        jpype.config.destroy_jvm = False
        jpype.startJVM(str(_library(_java())), *_FLAGS, convertStrings=True)
        _started_by = os.getpid()


def java_class(name: str, loader: Any = None) -> Any:
    """Returns a Java class of a class loader, by default of Java itself."""
    start()
    if loader is None:
        return _class_of_java(name)
    import jpype

    return jpype.JClass(_class_of_java("java.lang.Class").forName(name, True, loader))


@cache
def _class_of_java(name: str) -> Any:
    import jpype

    return jpype.JClass(name)


def class_loader(jars: Sequence[Path]) -> Any:
    """Returns the class loader of jars. Jars of others do not have an effect on their classes."""
    start()
    return _class_loader(tuple(jars))


@cache
def _class_loader(jars: tuple[Path, ...]) -> Any:
    file, parent = java_class("java.io.File"), java_class("java.lang.ClassLoader")
    urls = [file(str(jar)).toURI().toURL() for jar in jars]
    return java_class("java.net.URLClassLoader")(urls, parent.getPlatformClassLoader())


def _java() -> Java:
    try:
        return find("bundled")
    except UserError:
        return find("system")


def _library(java: Java) -> Path:
    return java.home / _LIBRARIES.get(sys.platform, "lib/server/libjvm.so")

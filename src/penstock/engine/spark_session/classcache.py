"""Class cache (CDS archive): Spark's classes, parsed once and mapped into every later JVM.

The first run records the names of its loaded classes. After its end a background process builds an
archive from the list in the user's cache directory. An archive is specific to a Java version and a
class path. This file is also the script of that process, so it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.core.java import Java

BUILD_TIMEOUT = 900.0
"""Seconds. A build takes about 12 seconds, and longer on a busy machine."""
UNUSED_AFTER = 30 * 86400.0
RETRY_AFTER = 3600.0

_OWN_ARCHIVE = ("-Xshare", "-XX:SharedArchiveFile", "-XX:AOT", "-javaagent", "-agent")
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""The archive at the address of its build: JVMs share its pages, and read only those that they use.
By default Java relocates it, which makes all pages private, as it also does if the address is used.
"""
_STREAMING = "/MicroBatchExecution id:"
_GENERATED = "/GeneratedClass"
_DIGEST = re.compile(r"[0-9a-f]{24}")
_ARCHIVE_FILE = re.compile(r"classes\.(jsa|txt|\d+)|seal\.(json|\d+)|failed|lock")
directories: list[ArchiveDirectory] = []
"""Archive directories of this process's Spark sessions."""
_builds: list[subprocess.Popen[bytes]] = []
"""Builds started by this process."""


@dataclass(frozen=True)
class ArchiveDirectory:
    """Directory of an archive. The seal, written last, describes the archive."""

    path: Path

    @property
    def archive(self) -> Path:
        return self.path / "classes.jsa"

    @property
    def names(self) -> Path:
        return self.path / "classes.txt"

    @property
    def seal(self) -> Path:
        return self.path / "seal.json"

    @property
    def failure(self) -> Path:
        return self.path / "failed"

    def read_seal(self) -> dict[str, object] | None:
        """Returns the seal if it matches the archive, otherwise None."""
        try:
            seal = json.loads(self.seal.read_text(encoding="utf-8"))
            stat = self.archive.stat()
        except (OSError, ValueError):
            return None
        if not isinstance(seal, dict):
            return None
        matches = (seal.get("size"), seal.get("time")) == (stat.st_size, int(stat.st_mtime))
        return seal if matches else None

    def write_seal(self, *, streaming: bool, class_path: str) -> None:
        stat = self.archive.stat()
        text = json.dumps(
            {
                "size": stat.st_size,
                "time": int(stat.st_mtime),
                "streaming": streaming,
                "class_path": class_path.split(os.pathsep),
            }
        )
        temporary = self.seal.with_suffix(f".{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.seal)


class ClassCache:
    """The class cache of one JVM. Failures of the cache never fail a run."""

    def __init__(self, directory: ArchiveDirectory, command: Sequence[str], scratch: Path) -> None:
        """Initializes the cache. `command` starts Java with all options of the archive."""
        self._directory = directory
        directories.append(directory)
        self._command = list(command)
        self._list = scratch / "classes.txt"
        seal = directory.read_seal()
        self._used = seal is not None
        self._records = not (seal and seal.get("streaming")) and not _recent(directory.failure)

    @classmethod
    def open(
        cls, java: Java, class_path: Sequence[Path], flags: Sequence[str], scratch: Path
    ) -> ClassCache | None:
        """Returns the cache; None for a class path with directories, or for CDS flags."""
        if any(flag.startswith(_OWN_ARCHIVE) for flag in flags) or not all(
            path.is_file() for path in class_path
        ):
            return None
        joined = os.pathsep.join(map(str, class_path))
        module_flags = [flag for flag in flags if flag.startswith("--")]
        command = [str(java.executable), *module_flags, "-XX:+UseSerialGC", "-Xmx1g", "-cp", joined]
        from penstock.core.cache import cache_directory

        digest = hashlib.sha256("\0".join([java.version, *command]).encode())
        try:
            for path in [java.executable, java.home / "lib" / "modules", *class_path]:
                stat = path.stat()
                digest.update(f"\0{stat.st_size} {int(stat.st_mtime)}".encode())
        except OSError:
            return None
        directory = ArchiveDirectory(cache_directory() / "classes" / digest.hexdigest()[:24])
        return cls(directory, command, scratch)

    @property
    def flags(self) -> list[str]:
        flags = []
        if self._used:
            flags += [
                f"-XX:SharedArchiveFile={self._directory.archive}",
                "-Xshare:auto",
                *_IN_PLACE,
            ]
        if self._records:
            flags.append(f"-XX:DumpLoadedClassList={self._list}")
        return flags

    def discard(self) -> bool:
        """Discards the archive after a crash. Returns False if this JVM used none."""
        if self._used:
            self._directory.seal.unlink(missing_ok=True)
        return self._used

    def build_from_recording(self) -> None:
        """Starts the build of the archive in the background. Call after the end of the JVM."""
        try:
            if self._used:
                os.utime(self._directory.path)
            if self._records and self._list.exists():
                self._start_build()
        except OSError:
            return

    def _start_build(self) -> None:
        lines = self._list.read_text(encoding="utf-8", errors="replace").splitlines()
        streaming = any(_STREAMING in line for line in lines)
        if self._used and not streaming:
            return
        self._directory.path.mkdir(parents=True, exist_ok=True)
        class_list = self._directory.names.with_suffix(f".{os.getpid()}")
        loadable = (line for line in lines if _GENERATED not in line)
        class_list.write_text("\n".join(loadable) + "\n", encoding="utf-8")
        arguments = [
            str(self._directory.path),
            str(class_list),
            str(int(streaming)),
            *self._command,
        ]
        build_process = subprocess.Popen(
            [sys.executable, "-IS", __file__, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        _builds.append(build_process)


def await_build() -> bool | None:
    """Waits for the archive of this process's last Spark session.

    Returns whether the archive exists; None if no archive is possible.
    """
    while _builds:
        _builds.pop().wait()
    if not directories:
        return None
    directory = directories[-1]
    with contextlib.suppress(OSError), (directory.path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    return directory.read_seal() is not None


def clear_failures() -> None:
    """Allows the next run to build an archive after a recent failure."""
    from penstock.core.cache import cache_directory

    for failure in cache_directory().glob("classes/*/failed"):
        if not failure.stat().st_size:
            failure.unlink(missing_ok=True)


def build(
    directory: ArchiveDirectory, class_list: Path, streaming: bool, command: Sequence[str]
) -> None:
    """Builds the archive from a class list. Does nothing while another process builds."""
    temporary = directory.archive.with_suffix(f".{os.getpid()}")
    try:
        with (directory.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            class_list.replace(directory.names)
            subprocess.run(
                [
                    *command[:-2],
                    "-Xlog:disable",
                    "-Xshare:dump",
                    f"-XX:SharedClassListFile={directory.names}",
                    f"-XX:SharedArchiveFile={temporary}",
                    *command[-2:],
                ],
                check=True,
                timeout=BUILD_TIMEOUT,
            )
            directory.seal.unlink(missing_ok=True)
            temporary.replace(directory.archive)
            directory.write_seal(streaming=streaming, class_path=command[-1])
            directory.failure.unlink(missing_ok=True)
            _remove_unused(directory)
    except BlockingIOError:
        return
    except (OSError, subprocess.SubprocessError):
        directory.failure.touch()
    finally:
        class_list.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)


def _remove_unused(directory: ArchiveDirectory) -> None:
    """Removes files of killed builds, and archives of removed jars or without use for long."""
    for path in directory.path.glob("classes.[0-9]*"):
        if not _recent(path):
            path.unlink(missing_ok=True)
    for path in _siblings(directory):
        unused = time.time() - path.stat().st_mtime > UNUSED_AFTER
        if unused or not _class_path_exists(ArchiveDirectory(path)):
            shutil.rmtree(path, ignore_errors=True)


def _class_path_exists(directory: ArchiveDirectory) -> bool:
    seal = directory.read_seal() or {}
    paths = seal.get("class_path", [])
    return not isinstance(paths, list) or all(Path(str(path)).is_file() for path in paths)


def _siblings(directory: ArchiveDirectory) -> Iterator[Path]:
    for path in directory.path.parent.iterdir():
        if path != directory.path and _is_archive_directory(path):
            yield path


def _is_archive_directory(path: Path) -> bool:
    """Returns whether the names of a directory and of its files are those of an archive."""
    return (
        _DIGEST.fullmatch(path.name) is not None
        and path.is_dir()
        and not path.is_symlink()
        and all(_ARCHIVE_FILE.fullmatch(file.name) for file in path.iterdir())
    )


def _recent(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < RETRY_AFTER
    except OSError:
        return False


if __name__ == "__main__":
    os.nice(10)
    build(ArchiveDirectory(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3] == "1", sys.argv[4:])

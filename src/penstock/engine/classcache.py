"""Java's class cache: Spark's classes, parsed once, mapped into every later JVM.

The first run writes down the names of the classes it loaded, which costs nothing; when it has
ended, a process of its own turns the list into an archive in the user's cache directory. The
archive belongs to one Java and one class path. Run as a script this file is that process, so it
imports the standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.java import Java

BUILD_TIMEOUT = 900.0
"""Seconds; it takes a dozen, and many times that where others keep the machine busy."""
UNUSED_AFTER = 30 * 86400.0
RETRY_AFTER = 3600.0

_OWN_ARCHIVE = ("-Xshare", "-XX:SharedArchiveFile", "-XX:AOT", "-javaagent", "-agent")
_STREAMING = "/MicroBatchExecution id:"
_GENERATED = "/GeneratedClass"
_rooms: list[Room] = []
"""Those of this process's Spark sessions."""
_making: list[subprocess.Popen[bytes]] = []
"""What this process has let begin."""


def directory() -> Path:
    """Where Penstock keeps what it can make again."""
    named = os.environ.get("PENSTOCK_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "penstock"


@dataclass(frozen=True)
class Room:
    """The directory of one archive. The seal, written last, says how the archive looks."""

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

    def sealed(self) -> dict[str, object] | None:
        """The seal, if the archive is the one that was sealed."""
        try:
            found = json.loads(self.seal.read_text(encoding="utf-8"))
            seen = self.archive.stat()
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict):
            return None
        whole = (found.get("size"), found.get("time")) == (seen.st_size, int(seen.st_mtime))
        return found if whole else None

    def put_seal(self, *, streaming: bool) -> None:
        seen = self.archive.stat()
        text = json.dumps(
            {"size": seen.st_size, "time": int(seen.st_mtime), "streaming": streaming}
        )
        fresh = self.seal.with_suffix(f".{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.seal)


class ClassCache:
    """What one JVM takes from the cache and gives back; never a reason for a run to fail."""

    def __init__(self, room: Room, command: Sequence[str], scratch: Path) -> None:
        """`command` starts this Java with everything that an archive depends on."""
        self._room = room
        _rooms.append(room)
        self._command = list(command)
        self._list = scratch / "classes.txt"
        seal = room.sealed()
        self._used = seal is not None
        self._learns = not (seal and seal.get("streaming")) and not _recent(room.failure)

    @classmethod
    def open(
        cls, java: Java, class_path: Sequence[Path], flags: Sequence[str], scratch: Path
    ) -> ClassCache | None:
        """None where there can be no archive: a directory on the class path, flags against it."""
        if any(flag.startswith(_OWN_ARCHIVE) for flag in flags) or not all(
            path.is_file() for path in class_path
        ):
            return None
        joined = os.pathsep.join(map(str, class_path))
        kept = [flag for flag in flags if flag.startswith("--")]
        command = [str(java.executable), *kept, "-XX:+UseSerialGC", "-Xmx1g", "-cp", joined]
        digest = hashlib.sha256("\0".join([java.version, *command]).encode())
        try:
            for path in [java.executable, java.home / "lib" / "modules", *class_path]:
                seen = path.stat()
                digest.update(f"\0{seen.st_size} {int(seen.st_mtime)}".encode())
        except OSError:
            return None
        room = Room(directory() / "classes" / digest.hexdigest()[:24])
        return cls(room, command, scratch)

    @property
    def flags(self) -> list[str]:
        flags = []
        if self._used:
            flags += [f"-XX:SharedArchiveFile={self._room.archive}", "-Xshare:auto"]
        if self._learns:
            flags.append(f"-XX:DumpLoadedClassList={self._list}")
        return flags

    def discard(self) -> bool:
        """Throws the archive away after a crash; False when this JVM had none."""
        if self._used:
            self._room.seal.unlink(missing_ok=True)
        return self._used

    def learn(self) -> None:
        """Once the JVM has ended: lets the archive be made from what it loaded, without waiting."""
        try:
            if self._used:
                os.utime(self._room.path)
            if self._learns and self._list.exists():
                self._begin()
        except OSError:
            return

    def _begin(self) -> None:
        lines = self._list.read_text(encoding="utf-8", errors="replace").splitlines()
        streaming = any(_STREAMING in line for line in lines)
        if self._used and not streaming:
            return
        self._room.path.mkdir(parents=True, exist_ok=True)
        given = self._room.names.with_suffix(f".{os.getpid()}")
        kept = (line for line in lines if _GENERATED not in line)
        given.write_text("\n".join(kept) + "\n", encoding="utf-8")
        work = [str(self._room.path), str(given), str(int(streaming)), *self._command]
        making = subprocess.Popen(
            [sys.executable, "-IS", __file__, *work],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        _making.append(making)


def await_made() -> bool | None:
    """Waits for the archive of this process's last Spark session, whoever makes it.

    Returns whether it is there; None if this Java can have none.
    """
    while _making:
        _making.pop().wait()
    if not _rooms:
        return None
    room = _rooms[-1]
    with contextlib.suppress(OSError), (room.path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    return room.sealed() is not None


def forget_failures() -> None:
    """Lets the next run try again, also where making an archive has failed lately."""
    for failure in directory().glob("classes/*/failed"):
        failure.unlink(missing_ok=True)


def build(room: Room, given: Path, streaming: bool, command: Sequence[str]) -> None:
    """Makes the archive from a class list, unless another process is at it already."""
    fresh = room.archive.with_suffix(f".{os.getpid()}")
    os.nice(10)
    try:
        with (room.path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            given.replace(room.names)
            subprocess.run(
                [
                    *command[:-2],
                    "-Xlog:disable",
                    "-Xshare:dump",
                    f"-XX:SharedClassListFile={room.names}",
                    f"-XX:SharedArchiveFile={fresh}",
                    *command[-2:],
                ],
                check=True,
                timeout=BUILD_TIMEOUT,
            )
            room.seal.unlink(missing_ok=True)
            fresh.replace(room.archive)
            room.put_seal(streaming=streaming)
            room.failure.unlink(missing_ok=True)
            _sweep(room)
    except BlockingIOError:
        return
    except (OSError, subprocess.SubprocessError):
        room.failure.touch()
    finally:
        given.unlink(missing_ok=True)
        fresh.unlink(missing_ok=True)


def _sweep(room: Room) -> None:
    """Removes what killed builds left here, and the rooms that nobody used for a long time."""
    for left in room.path.glob("classes.[0-9]*"):
        if not _recent(left):
            left.unlink(missing_ok=True)
    for other in _siblings(room):
        if time.time() - other.stat().st_mtime > UNUSED_AFTER:
            shutil.rmtree(other, ignore_errors=True)


def _siblings(room: Room) -> Iterator[Path]:
    return (path for path in room.path.parent.iterdir() if path != room.path)


def _recent(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < RETRY_AFTER
    except OSError:
        return False


if __name__ == "__main__":
    build(Room(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3] == "1", sys.argv[4:])

"""Who makes the class cache, and what is said of it."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from penstock.engine.spark_session import classcache
from penstock.engine.spark_session.classcache import ArchiveDirectory, ClassCache

DUMPS = """\
#!/bin/sh
for word; do
    case $word in -XX:SharedArchiveFile=*) echo classes >"${word#*=}" ;; esac
done
sleep {seconds}
"""


def dumping(directory: Path, seconds: float = 0.0) -> str:
    """Returns the path of a Java that writes an archive of classes and ends after some time."""
    java = directory / "java"
    java.write_text(DUMPS.replace("{seconds}", str(seconds)))
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return str(java)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchiveDirectory:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setattr(classcache, "directories", [])
    room = ArchiveDirectory(tmp_path / "classes/one")
    room.path.mkdir(parents=True)
    return room


def build(room: ArchiveDirectory, java: str) -> None:
    given = room.path / "given"
    given.touch()
    classcache.build(room, given, True, [java, "-cp", "none"])


def test_a_failure_stands_until_it_is_forgotten(room: ArchiveDirectory, tmp_path: Path) -> None:
    build(room, "false")
    cache = ClassCache(room, ["false"], tmp_path)
    assert cache.flags == [] and classcache.await_build() is False
    classcache.clear_failures()
    assert "-XX:DumpLoadedClassList" in ClassCache(room, ["false"], tmp_path).flags[0]


@pytest.mark.slow
def test_waits_for_another_that_makes_it(room: ArchiveDirectory, tmp_path: Path) -> None:
    java = dumping(tmp_path, seconds=0.5)
    ClassCache(room, [java], tmp_path)
    other = threading.Thread(target=build, args=(room, java))
    other.start()
    while not list(room.path.glob("classes.[0-9]*")):
        assert other.is_alive()
    assert not room.archive.exists()
    assert classcache.await_build() is True
    other.join()


def test_none_without_a_session(room: ArchiveDirectory) -> None:
    assert classcache.await_build() is None


def test_only_unused_archives_are_removed(room: ArchiveDirectory, tmp_path: Path) -> None:
    archive, photos = room.path.parent / ("0" * 24), room.path.parent / "photos"
    for path in (archive, photos):
        path.mkdir()
        (path / "classes.jsa").touch()
        os.utime(path, (0, 0))
    build(room, dumping(tmp_path))
    assert (archive.exists(), photos.exists()) == (False, True)


def test_archives_of_removed_jars_are_removed(room: ArchiveDirectory, tmp_path: Path) -> None:
    jar = tmp_path / "spark.jar"
    jar.touch()
    removed, kept = (ArchiveDirectory(room.path.parent / (digit * 24)) for digit in "01")
    for each, class_path in ((removed, f"{jar}:{tmp_path / 'gone.jar'}"), (kept, str(jar))):
        each.path.mkdir()
        each.archive.touch()
        each.write_seal(streaming=True, class_path=class_path)
    build(room, dumping(tmp_path))
    assert (removed.path.exists(), kept.path.exists()) == (False, True)

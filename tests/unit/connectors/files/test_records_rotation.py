"""Records of several lines in files that are rotated, touched and compressed between polls."""

from __future__ import annotations

import gzip
import lzma
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from test_files_records import LONG_AGO, Reader, age, append, records_of

from penstock.connectors.files import segments


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in" / "a.log"


@pytest.fixture
def tail(tmp_path: Path, log: Path) -> Reader:
    return Reader(tmp_path, "a.log*", tail=True, order="name", idle_timeout="1 hour")


def compress(path: Path) -> Path:
    compressed = path.with_name(f"{path.name}.gz")
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return compressed


def decompress(path: Path, target: Path) -> None:
    """Writes the content of a compressed file into a new file, in the compression of its name."""
    content = gzip.decompress(path.read_bytes())
    new = path.parent.parent / "new"
    encode = {".gz": gzip.compress, ".xz": lzma.compress}.get(target.suffix)
    new.write_bytes(encode(content) if encode else content)
    path.unlink()
    new.rename(target)


class Writer:
    """A program that logs to `a.log`, at random, and rotates it."""

    def __init__(self, log: Path, chance: random.Random) -> None:
        self.log, self.chance = log, chance
        self.contents = [b""]
        self.rotated = 0

    def write(self) -> None:
        pieces = [b"7 start\n", b" at x\n", b"\n", b"word\n", b"8 long" + b"y" * 60 + b"\n", b"9"]
        self._append(b"".join(self.chance.choices(pieces, k=self.chance.randrange(5))))

    def _append(self, data: bytes) -> None:
        append(self.log, data)
        self.contents[-1] += data

    def rotate(self, before_truncation: Callable[[], None]) -> None:
        """Starts a file, after the last line of the old one."""
        self._append(b"the end of %d\n" % self.rotated)
        self.rotated += 1
        target = Path(f"{self.log}.{self.rotated}")
        how = self.chance.choice(["rename", "copy", "compress"])
        if how == "copy":
            shutil.copy(self.log, target)
            before_truncation()
            self.log.write_bytes(b"")
        else:
            self.log.rename(target)
        if how == "compress":
            compress(target)
        self.contents.append(b"")

    def touch(self) -> None:
        """Changes the time of any file, or the compression of a rotated one."""
        path = self.chance.choice(sorted(self.log.parent.iterdir()))
        if path == self.log or self.chance.random() < 0.5:
            time = path.stat().st_mtime_ns - self.chance.randrange(1, 10**9)
            os.utime(path, ns=(time, time))
        elif path.suffix == ".gz":
            target = self.chance.choice([path, path.with_suffix(".xz"), path.with_suffix("")])
            decompress(path, target)
        elif path.suffix != ".xz":
            compress(path)

    def finish(self) -> list[tuple[int, str]]:
        self._append(b"the end\n")
        return [record for content in self.contents for record in records_of(content)]


@pytest.mark.quick(6)
@pytest.mark.parametrize("seed", range(60))
def test_records_do_not_depend_on_polls(
    seed: int, tail: Reader, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(segments, "CHUNK_BYTES", chance.choice([1, 7, 50, 1 << 20]))
    monkeypatch.setattr(segments, "SEGMENT_BYTES", chance.choice([1, 60, 1 << 20]))
    writer = Writer(log, chance)
    # A first line identifies the file, so that each rotated one is known.
    writer._append(b"0 first\n")
    found: list[tuple[int, str]] = []

    def poll() -> None:
        found.extend(tail.news())

    poll()
    for _ in range(40):
        writer.write()
        if chance.random() < 0.4:
            poll()
        if chance.random() < 0.1:
            poll()
            writer.rotate(before_truncation=poll)
            writer._append(b"%d first\n" % writer.rotated)
            poll()
        if chance.random() < 0.3:
            writer.touch()
    expected = writer.finish()
    age(tmp_path)
    poll()
    poll()
    assert sorted(found) == sorted(expected)
    assert not tail.bad


def test_a_touched_archive_is_not_read_again(tail: Reader, log: Path) -> None:
    append(log, b"1 a\n2 b\n at\n")
    assert tail.news() == [(1, "1 a")]
    rotated = log.rename(f"{log}.1")
    append(log, b"3 c\n4 d\n")
    assert tail.news() == [(1, "3 c")]
    archive = compress(rotated)
    assert tail.news() == [(2, "2 b\n at")]
    for time in (LONG_AGO, 2 * LONG_AGO):
        os.utime(archive, ns=(time, time))
        assert tail.news() == []
        offset = tail.at
        assert tail.news() == []
        assert tail.at == offset


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_pending_first_record_identifies_its_file(
    is_renamed: bool, tail: Reader, log: Path
) -> None:
    append(log, b"1 a\n")
    assert tail.news() == []
    append(log, b"2 b\n at\n")
    found = []
    if is_renamed:
        log.rename(f"{log}.1")
    else:
        shutil.copy(log, f"{log}.1")
        found = tail.news()
        assert found == [(1, "1 a")]
    log.write_bytes(b"3 c\n")
    compress(Path(f"{log}.1"))
    assert found + tail.news() == [(1, "1 a"), (2, "2 b\n at")]

"""Growing files that are copied, compressed, truncated or rewritten: each line once."""

from __future__ import annotations

import bz2
import gzip
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import structlog
from test_files_tail import Follower, say

from penstock.connectors.files.fingerprint import (
    may_be_rotated,
    possible_prefixes,
    rotation_prefix,
)
from penstock.core.errors import Permanent, Transient
from penstock.sdk import Read

HEADER = '{"id": 0, "v": "' + "x" * 300 + '"}\n'


@pytest.mark.parametrize(
    ("original", "path", "expected"),
    [
        ("in/a.log", "in/a.log.1", True),
        ("in/a.log", "in/a-2024-05-01.log.gz", True),
        ("in/a.log.1", "in/a.log.2.gz", True),
        ("in/a", "in/a.1", True),
        ("in/.a.log", "in/.a.log.1", True),
        ("in/a.log.1", "in/a.log", False),
        ("in/a.log", "in/b.log.1", False),
        ("in/a.log", "in/a.d/a.log.1", False),
        ("in/a.log", "old/a.log.1", False),
    ],
)
def test_names_of_rotation(original: str, path: str, expected: bool) -> None:
    assert may_be_rotated(original, path) is expected
    if expected:
        assert rotation_prefix(original) in possible_prefixes(path)


@pytest.fixture
def follower(tmp_path: Path, lines: Any) -> Follower:
    return Follower(tmp_path, lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "in" / "a.log"


def copy_and_truncate(log: Path, number: int = 1) -> None:
    shutil.copy(log, f"{log}.{number}")
    say(log, mode="w")


def compress(path: Path, target: Path | None = None) -> Path:
    compressed = target or path.with_name(path.name + ".gz")
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return compressed


def rows_of(source: Any, partition: Any) -> list[int]:
    return [row["id"] for batch in source.read(partition, Read()) for row in batch.to_pylist()]


def test_copied_lines_are_not_read_again(follower: Follower, log: Path) -> None:
    say(log, *range(100))
    assert follower.ids() == [*range(100)]
    copy_and_truncate(log)
    assert follower.ids() == []
    say(log, *range(100, 103))
    assert follower.ids() == [100, 101, 102]


def test_lines_before_truncation_are_read_from_the_copy(follower: Follower, log: Path) -> None:
    say(log, 1, 2)
    assert follower.ids() == [1, 2]
    say(log, 3, 4)
    copy_and_truncate(log)
    say(log, 5)
    assert sorted(follower.news()) == [(3, 3), (4, 4), (5, 1)]
    log.with_name("a.log.1").rename(log.with_name("a.log.2"))
    copy_and_truncate(log)
    say(log, 6)
    assert follower.ids() == [6]


def test_copy_waits_for_the_truncation(follower: Follower, log: Path) -> None:
    say(log, 1, 2)
    assert follower.ids() == [1, 2]
    say(log, 3)
    part = log.read_bytes()[:15]
    log.with_name("a.log.1").write_bytes(part)
    assert follower.ids() == [3]
    shutil.copy(log, f"{log}.1")
    assert follower.ids() == []
    say(log, mode="w")
    say(log, 4)
    assert follower.ids() == [4]


def test_files_that_start_alike_are_read_completely(follower: Follower, tmp_path: Path) -> None:
    say(tmp_path / "in" / "a.log", 1)
    assert follower.ids() == [1]
    say(tmp_path / "in" / "a-b.log", 1, 2)
    say(tmp_path / "in" / "b.log", 1)
    assert sorted(follower.ids()) == [1, 1, 2]
    say(tmp_path / "in" / "a.log", 3)
    assert follower.ids() == [3]


def test_equal_lines_after_renaming_are_read(follower: Follower, log: Path) -> None:
    say(log, 7, 7, 7)
    assert follower.ids() == [7, 7, 7]
    log.rename(f"{log}.1")
    say(log, 7)
    assert follower.ids() == [7]


def test_rewritten_file_with_the_same_head_is_read_from_its_start(
    follower: Follower, log: Path
) -> None:
    log.parent.mkdir()
    log.write_text(HEADER + '{"id": 1}\n')
    assert follower.ids() == [0, 1]
    log.write_text(HEADER + '{"id": 234567}\n{"id": 3}\n')
    assert follower.ids() == [0, 234567, 3]


@pytest.mark.parametrize("compressor", ["gzip", "bz2"])
def test_file_rotated_and_compressed_between_runs_is_continued(
    follower: Follower, log: Path, compressor: str
) -> None:
    say(log, *range(20))
    assert follower.ids() == [*range(20)]
    say(log, *range(20, 30))
    suffix, function = {"gzip": (".gz", gzip.compress), "bz2": (".bz2", bz2.compress)}[compressor]
    archive = log.with_name("a.log.1" + suffix)
    archive.write_bytes(function(log.read_bytes()))
    log.unlink()
    say(log, 30)
    news = follower.news()
    assert sorted(news) == [*((number, number + 1) for number in range(20, 30)), (30, 1)]
    archive.rename(log.with_name("a.log.2" + suffix))
    assert follower.ids() == []


def test_compressed_file_waits_until_it_is_complete(follower: Follower, log: Path) -> None:
    say(log, 1, 2)
    assert follower.ids() == [1, 2]
    say(log, 3)
    content = gzip.compress(log.read_bytes())
    archive = log.with_name("a.log.gz")
    archive.write_bytes(content[:-12])
    log.unlink()
    assert follower.ids() == []
    archive.write_bytes(content)
    assert follower.ids() == [3]


def test_compressed_file_with_unread_lines_only_is_a_warning(follower: Follower, log: Path) -> None:
    say(log.with_name("a.log.9"), 90)
    compress(log.with_name("a.log.9"))
    say(log, 1)
    assert follower.ids() == [1]
    log.unlink()
    say(log.with_name("a.log.2"), 50)
    compress(log.with_name("a.log.2"))
    say(log, 2)
    with structlog.testing.capture_logs() as logs:
        assert follower.ids() == [2]
        assert follower.ids() == []
    (warning,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert "a.log.2.gz" in warning["event"]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_lines_copied_between_discovery_and_reading(
    follower: Follower, log: Path, is_compressed: bool
) -> None:
    say(log, 1, 2)
    source = follower.source()
    end = source.latest_offset({"files": 0})
    copy_and_truncate(log)
    say(log, *range(10, 20))
    if is_compressed:
        compress(log.with_name("a.log.1"))
    (partition,) = source.partitions({"files": 0}, end)
    assert rows_of(source, partition) == [1, 2]
    follower.at = end
    assert follower.ids() == [*range(10, 20)]


def test_file_rewritten_between_discovery_and_reading(follower: Follower, log: Path) -> None:
    say(log, 1, 2)
    source = follower.source()
    end = source.latest_offset({"files": 0})
    say(log, *range(100, 110), mode="w")
    (partition,) = source.partitions({"files": 0}, end)
    with pytest.raises(Permanent, match="modified after its discovery"):
        rows_of(source, partition)
    follower.options["on_changed"] = "continue"
    assert rows_of(follower.source(), partition) == []
    follower.at = end
    assert follower.ids() == [*range(100, 110)]


def test_file_truncated_while_it_is_read(follower: Follower, log: Path) -> None:
    say(log, 1, 2)
    source = follower.source()
    (partition,) = source.partitions({"files": 0}, source.latest_offset({"files": 0}))
    batches = source.read(partition, Read())
    next(batches)
    copy_and_truncate(log)
    with pytest.raises(Transient, match="truncated while it was read"):
        list(batches)
    assert rows_of(source, partition) == [1, 2]


def touch(path: Path) -> None:
    modified = path.stat().st_mtime_ns + 1_000_000
    os.utime(path, ns=(modified, modified))


def rename_archives(log: Path) -> None:
    for number in range(9, 0, -1):
        for suffix in ("", ".gz"):
            old = log.with_name(f"a.log.{number}{suffix}")
            if old.exists():
                old.rename(log.with_name(f"a.log.{number + 1}{suffix}"))


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", range(10))
def test_copies_and_archives_at_any_time(follower: Follower, log: Path, seed: int) -> None:
    chance = random.Random(seed)
    written = 0
    received: list[int] = []

    def write() -> None:
        nonlocal written
        count = chance.randint(1, 5)
        say(log, *range(written, written + count))
        written += count

    write()
    for _ in range(40):
        write()
        if chance.random() < 0.5:
            received += follower.ids()
        if chance.random() < 0.5:
            received += follower.ids()
            write()
            rename_archives(log)
            if chance.random() < 0.5:
                copy_and_truncate(log)
            else:
                log.rename(f"{log}.1")
            if chance.random() < 0.5:
                compress(log.with_name("a.log.1"))
            if chance.random() < 0.5:
                received += follower.ids()
            write()
        if chance.random() < 0.5:
            touch(chance.choice(sorted(log.parent.iterdir())))
    received += follower.ids()
    assert sorted(received) == [*range(written)]

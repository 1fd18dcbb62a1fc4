"""Copies of growing files in another form: recompressed, decompressed, rewritten, unfinished."""

from __future__ import annotations

import bz2
import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_files_tail import Follower, say
from test_tail_rotation import compress


@pytest.fixture
def follower(tmp_path: Path, lines: Any) -> Follower:
    return Follower(tmp_path, lines)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "in" / "a.log"


@pytest.mark.parametrize("target", ["a.log.1.gz", "a.log.1.bz2", "a.log.2.gz", "a.log.1"])
def test_archive_in_another_form_is_not_read_again(
    follower: Follower, log: Path, target: str
) -> None:
    say(log, 1)
    assert follower.ids() == [1]
    say(log, 2)
    archive = compress(log, log.with_name("a.log.1.gz"))
    say(log, 3)
    assert sorted(follower.ids()) == [2, 3]
    content = gzip.decompress(archive.read_bytes())
    functions = {".gz": gzip.compress, ".bz2": bz2.compress, ".1": bytes}
    new = follower.root / "new"
    new.write_bytes(functions[Path(target).suffix](content))
    archive.unlink()
    new.rename(log.with_name(target))
    assert follower.ids() == []


def test_archive_that_equals_an_existing_one_is_continued(follower: Follower, log: Path) -> None:
    for number in (2, 1):
        say(log, 7)
        assert follower.ids() == [7]
        say(log, 8)
        log.with_name(f"a.log.{number}.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.rename(follower.root / f"kept.{number}")
        assert follower.ids() == [8]


def test_archive_that_grows_is_continued(follower: Follower, log: Path) -> None:
    say(log, 1)
    assert follower.ids() == [1]
    say(log, 2)
    archive = compress(log)
    assert follower.ids() == [2]
    say(log, 3)
    with archive.open("ab") as file:
        file.write(gzip.compress(log.read_bytes()))
    log.unlink()
    assert follower.news() == [(3, 3)]


def test_unfinished_first_line_identifies_its_file(follower: Follower, log: Path) -> None:
    say(log, 1, end="")
    assert follower.ids() == []
    log.write_text('{"id": 1}\n{"id": 2}\n')
    shutil.copy(log, f"{log}.1")
    assert follower.ids() == [1, 2]
    say(log, mode="w")
    say(log, 3)
    assert follower.ids() == [3]


def test_rewritten_copy_is_not_read_again(follower: Follower, log: Path) -> None:
    say(log, 1)
    assert follower.ids() == [1]
    say(log, 2)
    rotated = log.rename(f"{log}.1")
    say(log, 3)
    assert sorted(follower.ids()) == [2, 3]
    new = Path(shutil.copy(rotated, follower.root / "new"))
    rotated.rename(follower.root / "kept")
    say(new, 4)
    new.rename(rotated)
    assert follower.ids() == [4]

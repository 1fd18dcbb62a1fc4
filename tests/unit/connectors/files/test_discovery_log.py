"""Discovery log: durable before it is used, and archived files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.connectors.files.archive import Archive
from penstock.connectors.files.cloud_store import prefixes_of_earlier_versions
from penstock.connectors.files.file_range import FileRange
from penstock.connectors.files.local import LocalStorage
from penstock.connectors.files.log import DiscoveryLog
from penstock.connectors.files.staging import Ledger, Part


def file_range(name: str, inode: int = 0) -> FileRange:
    return FileRange(f"/in/{name}", 10, 1, inode=inode)


def test_discovered_files_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def record(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append((path.name, path.stat().st_size if path.is_file() else 0))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    path = tmp_path / "files.log"
    log = DiscoveryLog(path)
    with log.locked():
        log.append([file_range("a"), file_range("b")])
    assert synced[-1] == ("files.log", path.stat().st_size)
    log.archive(1)
    assert synced[-1] == ("files.log", path.stat().st_size)


def test_only_files_before_the_offset_are_archived(tmp_path: Path) -> None:
    log = DiscoveryLog(tmp_path / "files.log")
    with log.locked():
        log.append([file_range("a", 1), file_range("b", 2), file_range("a", 3)])
    log.archive(2)
    again = DiscoveryLog(tmp_path / "files.log")
    again.refresh()
    for each in (log, again):
        # The path of the first file was found again after it.
        assert "/in/a" in each and "/in/b" not in each
        assert len(each) == 3
    log.archive(3)
    assert "/in/a" not in log
    assert log.ranges(0, 3)[0] == file_range("a", 1)


def test_files_in_clouds_of_a_log_of_an_earlier_version(tmp_path: Path) -> None:
    """Its URLs of Azure had no account, and its times fractions of a second."""
    path = tmp_path / "files.log"
    keys = ["abfss://lake/in/a", "gs://bucket/in/b", "abfss://other/in/c"]
    earlier = DiscoveryLog(path)
    with earlier.locked():
        earlier.append([FileRange(key, 10, 7_123_000_000) for key in keys])
    url = "abfss://lake@account.dfs.core.windows.net/in"
    prefixes = prefixes_of_earlier_versions([f"{url}/*.json", "gs://bucket/in", "az://none", "/in"])
    log = DiscoveryLog(path, None, prefixes)
    with log.locked():
        log.append([FileRange(f"{url}/d", 10, 8_000_000_000)])
    found = [f"{url}/a", *keys[1:], f"{url}/d"]
    assert all(each in log for each in found) and keys[0] not in log
    times = [7_000_000_000] * 3 + [8_000_000_000]
    assert [(each.path, each.modified) for each in log.ranges(0, 4)] == [
        *zip(found, times, strict=True)
    ]
    assert log.digest(3) == earlier.digest(3)
    again = DiscoveryLog(path, None, prefixes)
    assert again.ranges(0, 4) == log.ranges(0, 4) and again.digest(4) == log.digest(4)
    log.archive(1)
    assert found[0] not in log and found[3] in log


@pytest.mark.parametrize("changed", ["size", "modified", None])
def test_a_file_that_was_modified_after_reading_is_kept(
    tmp_path: Path, changed: str | None
) -> None:
    path = tmp_path / "a.json"
    path.write_text("12345")
    os.utime(path, ns=(10**18, 10**18))
    found = FileRange(str(path), 5, 10**18)
    if changed == "size":
        path.write_text("123456")
        os.utime(path, ns=(10**18, 10**18))
    elif changed == "modified":
        os.utime(path, ns=(10**18, 10**18 + 1))
    Archive([], None).put(LocalStorage(), found)
    assert path.exists() is (changed is not None)


def test_a_ledger_contains_staged_parts_and_files_to_publish() -> None:
    part = Part(".penstock/1.tmp", "day=1", "1", ".json", 3, 30, 0.0)
    ledger = Ledger(4, ((".penstock/2.tmp", "day=1/p-2.json"),), (part,))
    assert Ledger.from_json(ledger.to_json()) == ledger
    contained = [ledger.contains(f".penstock/{number}.tmp") for number in (1, 2, 3)]
    assert contained == [True, True, False]
    assert not ledger.contains("day=1/p-2.json")

"""Offset log: the content of batches, and their durability."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.engine.checkpoints.offset_log import OffsetLog

ENTRY = 'v2\n{{"batchWatermarkMs":0,"batchTimestampMs":{time}}}\norders:{offset}'


def add(checkpoint: Path, number: int, offset: str, time: int = 0) -> None:
    folder = checkpoint / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number)).write_text(ENTRY.format(time=time, offset=offset))


def test_content_is_the_range_of_the_sources(tmp_path: Path) -> None:
    log = OffsetLog(tmp_path)
    add(tmp_path, 0, '{"files": 3, "lines": 1}')
    add(tmp_path, 1, '{"files": 5}', time=1)
    content = log.content(1)
    add(tmp_path, 1, '{"files": 5}', time=2)
    assert log.content(1) == content != log.content(0)
    add(tmp_path, 0, '{"lines": 1, "files": 3}')
    assert log.content(1) == content
    add(tmp_path, 0, '{"files": 4, "lines": 1}')
    assert log.content(1) != content
    add(tmp_path, 0, '{"files": 3, "lines": 1}')
    add(tmp_path, 1, '{"files": 5, "closed": true}')
    assert log.content(1) != content


def test_batches_without_rows(tmp_path: Path) -> None:
    log = OffsetLog(tmp_path)
    add(tmp_path, 0, '{"rows": 3}')
    add(tmp_path, 1, '{"rows": 3}')
    add(tmp_path, 2, '{"rows": 4}')
    assert [log.is_empty(0, {"orders": {"rows": n}}) for n in (3, 2)] == [True, False]
    assert not log.is_empty(0, {})
    assert [log.is_empty(number, {}) for number in (1, 2)] == [True, False]
    add(tmp_path, 0, "{}")
    assert log.is_empty(0, {"orders": {}})


def test_planned(tmp_path: Path) -> None:
    log = OffsetLog(tmp_path)
    assert log.planned is None
    for number in (9, 10):
        add(tmp_path, number, "{}")
    assert log.planned == 10


def test_entries_and_directories_are_synchronized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "state" / "checkpoints" / "orders"
    add(checkpoint, 0, "{}")
    (checkpoint / "offsets" / ".0.crc").touch()
    (checkpoint / "metadata").touch()
    synchronized: set[str] = set()
    fsync = os.fsync

    def record(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synchronized.add(str(path.relative_to(tmp_path.resolve())))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    log = OffsetLog(checkpoint)
    log.sync_planned(0)
    log.sync_committed(0)
    offsets = "state/checkpoints/orders/offsets"
    assert synchronized == {offsets, f"{offsets}/0", f"{offsets}/.0.crc"}
    log.sync_identity()
    directories = {".", "state", "state/checkpoints", "state/checkpoints/orders"}
    assert synchronized >= {*directories, "state/checkpoints/orders/metadata"}

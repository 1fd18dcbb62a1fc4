"""Offsets of journals: restored journals with other messages have other offsets."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.udp import UdpSource
from penstock.core.errors import StateError
from penstock.journal import Journal, writer
from penstock.journal.starts import add_start, writer_of
from penstock.sdk import Context, Message


def source(state: Path, **options: Any) -> UdpSource:
    config = UdpSource.config_type.model_validate({"listen": "127.0.0.1:1", **options})
    return UdpSource(config, Context("tests", "node", state))


def receive(state: Path, *payloads: bytes) -> None:
    """Appends messages in a new start of the receiver."""

    async def append(journal: Journal) -> None:
        for payload in payloads:
            await journal.append([Message(payload, {})])

    with source(state).journal() as journal:
        asyncio.run(append(journal))


def test_restored_journal_has_other_offsets(tmp_path: Path) -> None:
    state, backup = tmp_path / "state", tmp_path / "backup"
    receive(state, b"a", b"b")
    first = source(state).latest_offset({"position": 0})
    shutil.copytree(state, backup)
    receive(state, b"c")
    receive(backup, b"d")
    end, other = (source(each).latest_offset(first) for each in (state, backup))
    assert end["position"] == other["position"] == 3
    assert end != other


@pytest.mark.parametrize("received", [(), (b"x",)], ids=["empty", "used"])
def test_start_without_messages_before_the_backup(
    tmp_path: Path, received: tuple[bytes, ...]
) -> None:
    state, backup = tmp_path / "state", tmp_path / "backup"
    receive(state, *received)
    receive(state)
    shutil.copytree(state, backup)
    receive(state, b"c")
    receive(backup, b"d")
    start = {"position": len(received)}
    assert source(state).latest_offset(start) != source(backup).latest_offset(start)


def test_offsets_do_not_change_with_later_starts(tmp_path: Path) -> None:
    receive(tmp_path, b"a", b"b")
    end = source(tmp_path).latest_offset({"position": 0})
    for payload in (b"c", b"d"):
        receive(tmp_path)
        receive(tmp_path, payload)
    limited = source(tmp_path, max_records=2)
    latest = limited.latest_offset({"position": 0})
    assert limited.limit_batch({"position": 0}, latest) == end
    assert limited.latest_offset(latest) == limited.limit_batch(latest, latest) == latest
    assert limited.min_offset(latest, end) == limited.min_offset(end, latest) == end
    assert limited.latest_offset({"position": 4}) == {"position": 4}  # of an earlier version


def test_starts_of_removed_records_are_removed(tmp_path: Path) -> None:
    for position in (0, 5, 9):
        add_start(tmp_path, position, 0)
    third = writer_of(tmp_path, 10)
    add_start(tmp_path, 12, 9)
    assert writer_of(tmp_path, 9) is None
    assert writer_of(tmp_path, 10) == third != writer_of(tmp_path, 13)


def test_start_that_cannot_be_recorded_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "add_start", fail)
    with pytest.raises(StateError, match="No space left on device"):
        receive(tmp_path)

"""Measurements of the logs that servers retain."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.core.errors import Transient
from penstock.sdk.database.changes import measuring
from penstock.sdk.database.changes.measuring import RetainedLogFile, measure_logs
from penstock.sdk.retained_log import RetainedLog


def test_a_measurement_that_fails_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server or the disk may fail."""
    monkeypatch.setattr(measuring, "MEASURE_SECONDS", 0)
    (tmp_path / "file").touch()
    outcomes = iter((Transient("busy"), tmp_path / "file", tmp_path))

    def measure() -> Mapping[Path, RetainedLog]:
        found = next(outcomes, None)
        if isinstance(found, Transient):
            raise found
        if found is None:
            raise asyncio.CancelledError
        return {found: RetainedLog(7, share=0.5)}

    with suppress(asyncio.CancelledError):
        asyncio.run(measure_logs(measure))
    assert RetainedLogFile(tmp_path).read() == RetainedLog(7, share=0.5)


def test_the_file_of_an_earlier_version_has_a_size(tmp_path: Path) -> None:
    assert RetainedLogFile(tmp_path).read() is None
    (tmp_path / "retained").write_text("1234")
    assert RetainedLogFile(tmp_path).read() == RetainedLog(1234)

"""Measurements of the logs that servers retain, in a file beside each journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from penstock.core.errors import Permanent, Transient
from penstock.core.files.durable import replace_durably
from penstock.sdk.retained_log import RetainedLog

MEASURE_SECONDS = 30.0
"""The time between two measurements."""


class RetainedLogFile:
    """The last measurement of a source, in a file of its directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "retained"

    def read(self) -> RetainedLog | None:
        """Returns the last measurement; None before the first one."""
        with suppress(FileNotFoundError):
            found = json.loads(self._path.read_text())
            return RetainedLog(**found) if isinstance(found, dict) else RetainedLog(found)
        return None

    def store(self, log: RetainedLog) -> None:
        """Stores a measurement."""
        replace_durably(self._path, json.dumps(asdict(log)))


async def measure_logs(measure: Callable[[], Mapping[Path, RetainedLog]]) -> None:
    """Stores measurements until cancelled. One that fails is repeated later.

    `measure` returns them by the directory of their source. It has connections of its own, since
    those of the receiver wait while a journal is full.
    """
    while True:
        with suppress(Transient, Permanent, OSError):
            for directory, log in (await asyncio.to_thread(measure)).items():
                RetainedLogFile(directory).store(log)
        await asyncio.sleep(MEASURE_SECONDS)

"""Journals of receiving sources for tasks on machines that do not share the state directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.engine.driver_files.client import DriverFiles
from penstock.engine.driver_files.server import served
from penstock.engine.spark_session.shared_paths import shares_state
from penstock.journal.chunks import Chunk
from penstock.journal.reader import read_chunks
from penstock.sdk import ReceivingSource, Source
from penstock.sdk.phases import PhasedSource, receiving_source


@dataclass(frozen=True)
class ServedJournal:
    """A function for `ReceivingSource.chunks_of`, which reads a journal by the driver."""

    driver: DriverFiles

    def __call__(self, directory: Path, start: int, end: int) -> Iterator[Chunk]:
        if shares_state():
            return read_chunks(directory, start, end)
        return self.driver.journal(str(directory), start, end)


def serve_journal(source: Source[Any]) -> None:
    """Makes the tasks of a source read its journal by the driver, if the source has one."""
    receiving = receiving_source(source)
    if receiving is not None and receiving.context.state is not None:
        driver = served(receiving.directory)
        if driver is not None:
            assert isinstance(source, ReceivingSource | PhasedSource)
            source.chunks_of = ServedJournal(driver)

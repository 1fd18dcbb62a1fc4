"""Lookups by key in files of the driver's machine, for tasks on other machines.

Each request opens the files again, so that its rows are those of the files at that time.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.engine.driver_files.client import DriverFiles
from penstock.engine.driver_files.server import FileServer
from penstock.sdk import LookupSource, Read


@dataclass(frozen=True)
class ServedLookup:
    """A lookup table that the driver serves, as tasks see it."""

    driver: DriverFiles
    name: str

    def __call__(self, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        """Returns the rows of keys, as `LookupSource.lookup`."""
        response = self.driver.lookup(self.name, keys, read.metadata, isolated=read.isolated)
        rows, bad = pickle.loads(response)
        read.bad += bad
        return rows


def serve_lookup(server: FileServer, name: Path, source: LookupSource[Any]) -> ServedLookup:
    """Serves the rows of a source to tasks."""
    server.lookups[str(name)] = _lookup_of(source)
    return ServedLookup(server.address, str(name))


def _lookup_of(source: LookupSource[Any]) -> Callable[[pa.RecordBatch, Read], bytes]:
    """Returns a function that responds to requests of `ServedLookup`, in several threads."""
    pickled = pickle.dumps(source)

    def look_up(keys: pa.RecordBatch, read: Read) -> bytes:
        fresh: LookupSource[Any] = pickle.loads(pickled)
        client = fresh.open()
        try:
            return pickle.dumps((fresh.lookup(client, keys, read), read.bad))
        finally:
            fresh.close_client(client)

    return look_up

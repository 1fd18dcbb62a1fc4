"""The attempt of a batch under way, which the driver writes and tasks read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.core.files.durable import create_directory_durably, replace_durably

FOLDER = "deduplication"
"""The directory of the state in the checkpoint of a query."""
_FILE = "attempt"


@dataclass(frozen=True)
class Attempt:
    """An attempt of a batch. `name` is that of its files.

    Rows of the batch are after `watermark`, in milliseconds since 1970. Earlier ones are late.
    """

    batch: int
    name: str
    watermark: int

    def write(self, directory: Path) -> None:
        """Makes the attempt the current one."""
        create_directory_durably(directory)
        replace_durably(directory / _FILE, json.dumps(asdict(self)))

    @classmethod
    def read(cls, directory: Path) -> Attempt:
        """Returns the current attempt."""
        return cls(**json.loads((directory / _FILE).read_text("utf-8")))

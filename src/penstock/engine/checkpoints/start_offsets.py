"""Start offsets of a query: the offsets at which the first batch begins, in its checkpoint.

Spark's offset log has only the ends of batches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.core.files.durable import replace_durably
from penstock.engine.checkpoints.offset_log import OffsetLog

DIRECTORY = "penstock-start"


class StartOffsets:
    """The start offsets in the checkpoint of a query, one file for each source."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint

    def read(self) -> dict[str, Mapping[str, Any]]:
        """Returns the start offset of each source; none before the first batch is planned.

        Queries of earlier versions have no start offsets.
        """
        if OffsetLog(self._checkpoint).planned is None:
            return {}
        files = sorted((self._checkpoint / DIRECTORY).glob("*.json"))
        return {file.stem: json.loads(file.read_text("utf-8")) for file in files}

    def record(self, source: str, offset: Mapping[str, Any]) -> None:
        """Records the start offset of a source durably."""
        directory = self._checkpoint / DIRECTORY
        replace_durably(directory / f"{source}.json", json.dumps(offset))

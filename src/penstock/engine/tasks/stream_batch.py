"""Identity of the batches of plain PySpark streams, from the checkpoint of their query."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.core.errors import StateError
from penstock.engine.checkpoints.offset_log import OffsetLog
from penstock.engine.checkpoints.state_age import check_batch
from penstock.engine.tasks import task as spark_task
from penstock.sdk import BatchId, Capability, Sink

_checked: set[tuple[str, str]] = set()
"""The query and the sink of each start whose first batch was checked in this process."""


@dataclass(frozen=True)
class StreamBatch:
    """The identity of a task's batch. `location` is the option `checkpointLocation`."""

    type_: str
    location: str | None

    def identify(self, sink: Sink[Any]) -> BatchId:
        """Returns the ID of the batch of this task, with the digest of its offsets.

        Without the offsets the content is the ID of the start of the query, so that only a task
        that is repeated within this start writes the same batch.

        Raises StateError for an EXACTLY_ONCE sink if the offsets cannot be read, and for a
        checkpoint that is older than the sink.
        """
        query = spark_task.query_id() or "pyspark"
        number = spark_task.batch_number() or 0
        content = self._content(query, number)
        exactly_once = Capability.EXACTLY_ONCE in sink.capabilities
        if content is None and exactly_once:
            raise self._unknown_error()
        batch = BatchId(query, number, content or spark_task.run_id())
        start = (spark_task.run_id(), repr(sink.config))
        if exactly_once and start not in _checked:
            check_batch(
                sink,
                batch,
                f'sink "{self.type_}": the checkpoint in {self.location}',
                "Restore the newer checkpoint. Without it, use a new checkpoint and an empty "
                "output. With a new checkpoint alone, all rows are written again.",
            )
            _checked.add(start)
        return batch

    def _content(self, query: str, number: int) -> str | None:
        """Returns the digest of the offsets of a batch; None if they cannot be read."""
        parts = urlsplit(self.location or "")
        if not self.location or parts.scheme not in ("", "file"):
            return None
        checkpoint = Path(unquote(parts.path) if parts.scheme else self.location)
        try:
            if json.loads((checkpoint / "metadata").read_text("utf-8"))["id"] != query:
                return None
            return OffsetLog(checkpoint).content_of_entries(number)
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _unknown_error(self) -> StateError:
        return StateError(
            f'sink "{self.type_}": expected a checkpoint that all tasks can read, found '
            f"{self.location or 'none in the options of the writer'}",
            code="unknown-checkpoint",
            hint='Set .option("checkpointLocation", PATH) to a directory on a disk that all '
            "workers share, or run a pipeline with penstock.run.",
        )

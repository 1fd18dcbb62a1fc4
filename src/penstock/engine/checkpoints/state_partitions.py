"""Number of partitions of the state of a query, which Spark repartitions in its checkpoint.

The state after batch N becomes that of batch N+1, which reads no rows. Spark writes the entry of
that batch to the offset log before the state, and to the commit log after it. A repartitioning that
was interrupted is completed at the next start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.core.errors import StateError
from penstock.core.files.durable import sync
from penstock.core.text import plural, shorten
from penstock.engine.checkpoints.offset_log import OffsetLog, last_number

_PARTITIONS = "spark.sql.shuffle.partitions"


class StatePartitions:
    """The partitions of a query's state, in a checkpoint on a local or shared path.

    The query must not run.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint
        self._log = OffsetLog(checkpoint)

    @property
    def number(self) -> int | None:
        """The number of partitions, which all batches use; None if no batch has recorded it."""
        planned = self._log.planned
        return None if planned is None else self._number(planned)

    @property
    def committed(self) -> int | None:
        """The number of the last committed batch; None without one."""
        return last_number(self._checkpoint / "commits")

    @property
    def in_spark(self) -> bool:
        """Whether the query has state in a state store of Spark."""
        return (self._checkpoint / "state").exists()

    @property
    def interrupted(self) -> bool:
        """Whether an earlier repartitioning was interrupted."""
        planned, committed = self._log.planned, self.committed
        return (
            planned is not None
            and committed is not None
            and planned == committed + 1
            and self._number(planned) != self._number(committed)
        )

    @property
    def has_batch_in_progress(self) -> bool:
        """Whether the last batch is planned and not committed."""
        return self._log.planned != self.committed and not self.interrupted

    def remove_planned_batch(self) -> None:
        """Removes a planned batch that no sink has begun to write. Spark plans it again."""
        if self.has_batch_in_progress and self.committed is not None:
            self._log.remove_after(self.committed)

    def repartition(self, session: SparkSession, number: int) -> None:
        """Repartitions the state into `number` partitions, durably.

        No batch may be in progress, and state of Spark must be in RocksDB. Raises StateError if
        Spark cannot repartition the state, which then remains as it was.
        """
        planned = self._log.planned
        assert planned is not None
        if self.in_spark:
            self._repartition_stores(session, number)
        else:
            self._log.replace_setting(planned, _PARTITIONS, str(number))

    def _repartition_stores(self, session: SparkSession, number: int) -> None:
        """Repartitions the state in the state stores of Spark."""
        manager: Any = session._streamingCheckpointManager
        before = self.committed
        assert before is not None
        try:
            manager.repartition(str(self._checkpoint), number)
        except (Py4JJavaError, PySparkException) as error:
            self._log.remove_after(before)
            java: Any = getattr(error, "java_exception", None)
            raise StateError(
                f"the state cannot be repartitioned into {plural(number, 'partition')}",
                code="fixed-partitions",
                detail=shorten(str(java.getMessage() if java is not None else error)),
                hint="Restore runtime.partitions, or reset the state with --fresh.",
            ) from error
        for path in sorted(self._checkpoint.rglob("*")):
            sync(path)
        sync(self._checkpoint)

    def _number(self, batch: int) -> int | None:
        number = self._log.settings(batch).get(_PARTITIONS)
        return None if number is None else int(number)

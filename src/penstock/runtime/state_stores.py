"""State stores of a run: state moves to RocksDB, or is repartitioned, between two batches."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.core.log import Log
from penstock.core.units import size_text
from penstock.engine.checkpoints.state_partitions import StatePartitions
from penstock.engine.checkpoints.state_store import PROVIDER, ROCKSDB, StateStore
from penstock.engine.deduplication.attempt import FOLDER as DEDUPLICATION
from penstock.engine.spark_session.shared import session_count
from penstock.engine.updating.versions import FOLDER as UPDATING
from penstock.engine.updating.versions import OperatorStateDirectory
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.runtime.state.directory import StateDirectory

_NEXT_BATCH = 2
"""The ordinal of the batch after the one in progress, which is planned and not written."""
HEAP_SHARE = 0.3
"""The share of the heap above which state in memory moves. A batch needs the rest."""


class RestartRequired(Exception):
    """The end of a query whose state moves, or is repartitioned, before its restart."""


class StateStores:
    """The state stores of the queries of a run."""

    def __init__(
        self, plan: Plan, session: SparkSession, state: StateDirectory, metrics: Metrics, log: Log
    ) -> None:
        self._plan, self._session, self._state = plan, session, state
        self._metrics, self._log = metrics, log
        self._outgrown: set[str] = set()
        self._immovable: set[str] = set()
        """The queries whose state cannot move (again)."""
        self._deferred: dict[str, int] = {}
        """The queries that are repartitioned after the batch in progress, with the number of
        batches that have begun meanwhile."""

    def prepare(self, query: Query) -> None:
        """Moves and repartitions the state of a query that does not run, if necessary.

        Raises StateError if the state cannot have the partitions that the pipeline sets.
        """
        self._prepare_store(query)
        self._prepare_partitions(query)

    def _prepare_partitions(self, query: Query) -> None:
        """Repartitions the state if the pipeline sets another number of partitions."""
        name = query.name
        partitions = StatePartitions(self._state.checkpoint(name))
        if self._deferred.pop(name, 0) == _NEXT_BATCH:
            partitions.remove_planned_batch()
        before, number = partitions.number, self._partitions
        if before is None:
            return
        if partitions.interrupted:
            self._repartition(name, partitions, before)
        if number in (None, before):
            return
        if partitions.has_batch_in_progress:
            self._deferred[name] = 0
            return
        self._repartition(name, partitions, number)

    def _repartition(self, name: str, partitions: StatePartitions, number: int) -> None:
        checkpoint, before = self._state.checkpoint(name), partitions.number
        if (store := StateStore(checkpoint)).in_memory:
            self._immovable.add(name)
            self._move(name, store)
        if partitions.in_spark and partitions.committed is not None:
            for folder in (UPDATING, DEDUPLICATION):
                OperatorStateDirectory(checkpoint / folder).copy_to_next(partitions.committed)
        partitions.repartition(self._session, number)
        self._state.storage.sync(checkpoint)
        self._log.info("state repartitioned", query=name, partitions=number, before=before)

    @property
    def _partitions(self) -> int | None:
        """The number of partitions that the pipeline sets."""
        runtime = self._plan.spec.runtime
        number = runtime.partitions or runtime.spark.get("spark.sql.shuffle.partitions")
        return None if number is None else int(number)

    def _prepare_store(self, query: Query) -> None:
        """Moves the state of a query to RocksDB, if it must be there."""
        name = query.name
        store = StateStore(self._state.checkpoint(name))
        if name in self._immovable or not store.in_memory:
            return
        if name in self._outgrown or self._session.conf.get(PROVIDER, None) == ROCKSDB:
            self._immovable.add(name)
            self._move(name, store)

    def check(self, query: Query) -> None:
        """Raises RestartRequired for a query whose state must move or be repartitioned.

        The largest state in memory moves if all states exceed the limit. A state is repartitioned
        after the batch that was in progress at the start.
        """
        if query.name in self._deferred:
            self._deferred[query.name] += 1
            if self._deferred[query.name] == _NEXT_BATCH:
                raise RestartRequired
        progress = dict(self._metrics.progress)
        sizes = {name: each.state_bytes for name, each in progress.items() if each.state_bytes}
        if query.name not in sizes or self._limit is None or sum(sizes.values()) <= self._limit:
            return
        present = {name: size for name, size in sizes.items() if self._can_move(name)}
        largest = max(present, key=lambda name: present[name], default=None)
        if sum(present.values()) > self._limit and query.name == largest:
            self._outgrown.add(query.name)
            raise RestartRequired

    def _can_move(self, name: str) -> bool:
        if name not in self._immovable and not StateStore(self._state.checkpoint(name)).in_memory:
            self._immovable.add(name)
        return name not in self._immovable

    @property
    def _limit(self) -> float | None:
        """The maximum bytes of state in the heap; None if the pipeline sets the state store.

        Pipelines that share the heap have equal parts of the limit.
        """
        return None if self._heap is None else HEAP_SHARE * self._heap / session_count()

    @cached_property
    def _heap(self) -> int | None:
        """The size of the heap in bytes; None if the pipeline sets the state store.

        On a cluster the state is in the heaps of other processes, whose size is unknown here.
        """
        runtime = self._plan.spec.runtime
        local = str(self._session.sparkContext.master).startswith("local")
        if runtime.state_store != "auto" or PROVIDER in runtime.spark or not local:
            return None
        java: Any = self._session._jvm
        return int(java.java.lang.Runtime.getRuntime().maxMemory())

    def _move(self, name: str, store: StateStore) -> None:
        began = time.monotonic()
        try:
            rows = store.move_to_rocksdb(self._session)
        except (OSError, Py4JError) as error:
            self._log.warning("state stays in memory", query=name, error=f"{error}")
            return
        progress = self._metrics.progress.get(name)
        size = progress.state_bytes if progress else None
        self._log.info(
            "state moved to RocksDB", query=name, rows=rows,
            memory=size_text(size) if size else None,
            seconds=round(time.monotonic() - began, 1),
        )  # fmt: skip

"""State stores of a run: state moves to RocksDB, or into other partitions, between two batches."""

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
from penstock.engine.updating.versions import FOLDER as UPDATING
from penstock.engine.updating.versions import OperatorStateDirectory
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.runtime.state.directory import StateDirectory

_WAITS, _BEGUN, _UNWRITTEN = range(3)
"""The progress of a batch: not begun in this start; begun; written, and the next one planned."""
HEAP_SHARE = 0.3
"""The share of the heap above which state in memory moves. A batch needs the rest."""


class StateMoves(Exception):
    """The end of a query whose state moves before its restart."""


class StateStores:
    """The state stores of the queries of a run."""

    def __init__(
        self, plan: Plan, session: SparkSession, state: StateDirectory, metrics: Metrics, log: Log
    ) -> None:
        self._plan, self._session, self._state = plan, session, state
        self._metrics, self._log = metrics, log
        self._outgrown: set[str] = set()
        self._settled: set[str] = set()
        """The queries whose state cannot move (again)."""
        self._undivided: dict[str, int] = {}
        """The queries whose state is divided after the batch in progress, by its progress."""

    def prepare(self, query: Query) -> None:
        """Moves the state of a query that does not run, if it must be elsewhere.

        Raises StateError if it cannot be divided into the partitions of the pipeline.
        """
        self._prepare_store(query)
        self._prepare_partitions(query)

    def _prepare_partitions(self, query: Query) -> None:
        """Divides the state into the partitions that the pipeline sets, if it has others."""
        name = query.name
        partitions = StatePartitions(self._state.checkpoint(name))
        if self._undivided.pop(name, None) == _UNWRITTEN:
            partitions.discard_planned_batch()
        before, number = partitions.number, self._partitions
        if before is None:
            return
        if partitions.interrupted:
            self._divide(name, partitions, before)
        if number in (None, before):
            return
        if partitions.has_batch_in_progress:
            self._undivided[name] = _WAITS
            return
        self._divide(name, partitions, number)

    def _divide(self, name: str, partitions: StatePartitions, number: int) -> None:
        checkpoint, before = self._state.checkpoint(name), partitions.number
        if (store := StateStore(checkpoint)).in_memory:
            self._settled.add(name)
            self._move(name, store)
        if partitions.in_spark and partitions.committed is not None:
            for folder in (UPDATING, DEDUPLICATION):
                OperatorStateDirectory(checkpoint / folder).repeat(partitions.committed)
        partitions.change(self._session, number)
        self._state.storage.sync(checkpoint)
        self._log.info("state divided", query=name, partitions=number, before=before)

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
        if name in self._settled or not store.in_memory:
            return
        if name in self._outgrown or self._session.conf.get(PROVIDER, None) == ROCKSDB:
            self._settled.add(name)
            self._move(name, store)

    def check(self, query: Query) -> None:
        """Raises StateMoves for a query whose state must move.

        That is the largest state in memory if all of it exceeds the limit, and the state of a
        query whose batch was in progress when its partitions were to change."""
        if (batch := self._undivided.get(query.name)) is not None:
            self._undivided[query.name] = batch + 1
            if batch == _BEGUN:
                raise StateMoves
        progress = dict(self._metrics.progress)
        sizes = {name: each.state_bytes for name, each in progress.items() if each.state_bytes}
        if query.name not in sizes or self._limit is None or sum(sizes.values()) <= self._limit:
            return
        present = {name: size for name, size in sizes.items() if self._can_move(name)}
        largest = max(present, key=lambda name: present[name], default=None)
        if sum(present.values()) > self._limit and query.name == largest:
            self._outgrown.add(query.name)
            raise StateMoves

    def _can_move(self, name: str) -> bool:
        if name not in self._settled and not StateStore(self._state.checkpoint(name)).in_memory:
            self._settled.add(name)
        return name not in self._settled

    @cached_property
    def _limit(self) -> float | None:
        """The maximum bytes of state in the heap; None if the pipeline sets the state store.

        On a cluster the state is in the heaps of other processes, whose size is unknown here.
        """
        runtime = self._plan.spec.runtime
        local = str(self._session.sparkContext.master).startswith("local")
        if runtime.state_store != "auto" or PROVIDER in runtime.spark or not local:
            return None
        java: Any = self._session._jvm
        return HEAP_SHARE * int(java.java.lang.Runtime.getRuntime().maxMemory())

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

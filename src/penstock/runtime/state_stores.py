"""State stores of a run: state that outgrows memory moves to RocksDB between two batches."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from penstock.core.log import Log
from penstock.core.units import size_text
from penstock.engine.checkpoints.state_store import PROVIDER, ROCKSDB, StateStore
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan, Query
from penstock.runtime.state.directory import StateDirectory

HEAP_SHARE = 0.3
"""The share of the heap above which state in memory moves. A batch needs the rest."""


class StateTooLarge(Exception):
    """The end of a query that must be restarted with its state in RocksDB."""


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

    def prepare(self, query: Query) -> None:
        """Moves the state of a query that does not run to RocksDB, if it must be there."""
        name = query.name
        store = StateStore(self._state.checkpoint(name))
        if name in self._settled or not store.in_memory:
            return
        if name in self._outgrown or self._session.conf.get(PROVIDER, None) == ROCKSDB:
            self._settled.add(name)
            self._move(name, store)

    def check(self, query: Query) -> None:
        """Raises StateTooLarge for the largest state, if all state in memory exceeds the limit."""
        progress = dict(self._metrics.progress)
        sizes = {name: each.state_bytes for name, each in progress.items() if each.state_bytes}
        if query.name not in sizes or self._limit is None or sum(sizes.values()) <= self._limit:
            return
        present = {name: size for name, size in sizes.items() if self._can_move(name)}
        largest = max(present, key=lambda name: present[name], default=None)
        if sum(present.values()) > self._limit and query.name == largest:
            self._outgrown.add(query.name)
            raise StateTooLarge

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

"""Starts of the queries of a run: their batches, the storage of their files, their counts."""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.engine.build import Builder
from penstock.engine.checkpoints.state_storage import QueryStorage
from penstock.engine.start import StartedQuery, Until, start
from penstock.observe.late import LateCount
from penstock.plan.model import Plan, Query
from penstock.runtime.batch_events import BatchEvents
from penstock.runtime.query_run import QueryRun
from penstock.runtime.state.directory import StateDirectory
from penstock.spec.runtime_models import Restart


class QueryStarts:
    """The starts of the queries of a plan, also those after an error.

    `events` observes the batches of all queries.
    """

    def __init__(
        self, plan: Plan, session: SparkSession, state: StateDirectory, policy: Restart,
        events: BatchEvents,
    ) -> None:  # fmt: skip
        self._plan, self._session, self._state = plan, session, state
        self._policy, self._events = policy, events
        self._metrics, self._log = events.metrics, events.log

    def run(self, builder: Builder, query: Query, until: Until) -> QueryRun:
        """Starts a query, and returns its run."""

        def start_query() -> StartedQuery:
            return self._start(builder, query, until)

        return QueryRun(
            query, start_query, self._session, self._policy, self._state, self._metrics, self._log
        )

    def _start(self, builder: Builder, query: Query, until: Until) -> StartedQuery:
        self._events.state_stores.prepare(query)
        started = start(
            builder, query, self._state.checkpoint(query.name), self._events,
            until=until, trigger=self._plan.trigger(query),
            storage=self._storage(query),
        )  # fmt: skip
        self._events.listener.sources[query.name] = started.sources
        self._expect_late_rows(started, until)
        for table in started.changed_tables:
            self._log.warning(
                "static table changed", table=table, query=query.name,
                kept="the rows at the start of the state, until --fresh",
            )  # fmt: skip
        return started

    def _storage(self, query: Query) -> QueryStorage:
        """Returns the storage of the files that the batches of a query change.

        Dead letters move from the spool to their store, so that the spool is copied first.
        """
        state, plan = self._state, self._plan
        names = [*query.stream_nodes, *query.batch_nodes, *query.sinks]
        nodes = [state.root / "nodes" / name for name in names if name in plan.nodes]
        spool = state.spool / query.name
        paths = (state.checkpoint(query.name), *nodes, spool, state.dead_letters)
        return QueryStorage(state.storage, paths)

    def _expect_late_rows(self, started: StartedQuery, until: Until) -> None:
        """Sets whether Spark or the batches of a query count its late rows."""
        if until != "closed" and started.query in self._plan.with_windows:
            late = started.runner.late
            nodes = dict.fromkeys(late.nodes if late else (), 0)
            self._metrics.late.setdefault(started.query.name, LateCount(late is not None, nodes))

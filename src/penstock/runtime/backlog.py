"""Backlog: the number of unread records when a run starts."""

from __future__ import annotations

import pickle

from penstock.core.errors import PenstockError
from penstock.plan.model import Node, Plan
from penstock.runtime.acknowledge import committed_offsets
from penstock.runtime.state import StateDirectory
from penstock.sdk import ReplayableSource


def count_backlog(plan: Plan, state: StateDirectory) -> int:
    """Returns the number of unread records of all sources that count records.

    Works on copies of the sources, which keep their initial state. An unreachable source counts
    as 0.
    """
    return sum(_node_backlog(node, plan, state) for node in plan.of("source") if not node.static)


def _node_backlog(node: Node, plan: Plan, state: StateDirectory) -> int:
    source = pickle.loads(pickle.dumps(node.source))
    if not isinstance(source, ReplayableSource) or source.lag_unit != "records":
        return 0
    queries = [query.name for query in plan.queries if node.name in query.stream_nodes]
    try:
        committed = [committed_offsets(state, query).get(node.name) for query in queries]
        starts = [source.initial_offset() if offset is None else offset for offset in committed]
        lags = (source.lag(start, source.latest_offset(start)) or 0 for start in starts)
        return max(lags, default=0)
    except PenstockError:
        return 0
    finally:
        source.close()

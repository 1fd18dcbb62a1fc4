"""How much is waiting when a run begins."""

from __future__ import annotations

import pickle

from penstock.core.errors import PenstockError
from penstock.plan.model import Node, Plan
from penstock.runtime.acknowledge import committed_positions
from penstock.runtime.state import StateDirectory
from penstock.sdk import ReplayableSource


def backlog(plan: Plan, state: StateDirectory) -> int:
    """The records before all sources, as far as they count records and can be asked.

    Copies are asked, so that the sources begin as if nobody had.
    """
    return sum(_of(node, plan, state) for node in plan.of("source") if not node.static)


def _of(node: Node, plan: Plan, state: StateDirectory) -> int:
    source = pickle.loads(pickle.dumps(node.source))
    if not isinstance(source, ReplayableSource) or source.unit != "records":
        return 0
    queries = [query.name for query in plan.queries if node.name in query.within]
    try:
        begun = [committed_positions(state, query).get(node.name) for query in queries]
        starts = [source.initial() if at is None else at for at in begun]
        return max((source.lag(at, source.latest(at)) or 0 for at in starts), default=0)
    except PenstockError:
        return 0
    finally:
        source.close()

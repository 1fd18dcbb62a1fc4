"""Collection of the dead letters of tables during a run."""

from __future__ import annotations

from collections.abc import Callable

from penstock.engine.lookups.lookup_table import LOOKUPS, read_state
from penstock.plan.model import Plan
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Capability


class TableDeadLetters:
    """The dead letters of the static tables and the lookup tables of a run."""

    def __init__(self, plan: Plan, state: StateDirectory) -> None:
        self._plan, self._state = plan, state
        self._collected: set[str] = set()

    def collect(self, collect: Callable[[str, int | None], bool]) -> None:
        """Collects dead letters of static tables once; each phase reads the tables again.

        Those of a lookup table are collected for each content.
        """
        for node in self._plan.of("source"):
            if node.can(Capability.LOOKUP_BY_KEY):
                continue
            if node.lookup:
                for query in self._plan.queries:
                    checkpoint = self._state.checkpoint(query.name)
                    if node.name in query.dead_letter_nodes:
                        collect(node.name, read_state(checkpoint / LOOKUPS / node.name).version)
            elif node.static and node.name not in self._collected and collect(node.name, 0):
                self._collected.add(node.name)

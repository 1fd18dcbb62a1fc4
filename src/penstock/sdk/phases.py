"""Sources in phases: sources that read other sources one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.sdk.component import C
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.source import Offset


class PositionedSource(ABC):
    """A replayable source that can start after given positions, as the last phase of a hybrid
    source."""

    @abstractmethod
    def offset_after(self, positions: Mapping[int, int]) -> Offset:
        """Returns the offset after the record at a position of each partition, by its number.

        Partitions without a position are read from their beginning. Called if the source has a
        single topic. Raises Permanent if a position does not exist.
        """


class PhasedSource(ReplayableSource[C]):
    """A source that reads other sources one after another. Its option `phases` lists them.

    The planner creates the source of each phase from its options, with the format, the declared
    columns and the primary key of the node.
    """

    phases: Sequence[ReplayableSource[Any]] = ()
    starts: ReplayableSource[Any] | None = None
    """The source of the positions at which the last phase starts, which is no phase itself."""

    @abstractmethod
    def phase_options(self) -> Sequence[Mapping[str, Any]]:
        """Returns the `type`, the `format` and the options of each phase."""

    def start_options(self) -> Mapping[str, Any] | None:
        """Returns the options of `starts`, of the option `start_offsets`; None without it."""
        return None

    @abstractmethod
    def set_phases(self, phases: Sequence[ReplayableSource[Any]]) -> None:
        """Sets `phases`, without those with errors. Called before any other method."""

    def phase_state(self, number: int) -> Path | None:
        """Returns the state directory of a phase, counted from 1; None without state."""
        state = self.context.state
        return state / "phases" / str(number) if state is not None else None

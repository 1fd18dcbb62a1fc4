"""Sources in phases: sources that read other sources one after another."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from penstock.journal.chunks import ReadChunks
from penstock.journal.reader import read_chunks
from penstock.sdk.component import C, Component
from penstock.sdk.receiving import ReceivingSource
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.source import Offset

S = TypeVar("S", bound=ReplayableSource[Any])


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
    chunks_of: ReadChunks = staticmethod(read_chunks)
    """The function by which a last phase that receives messages reads its journal."""

    @abstractmethod
    def phase_options(self) -> Sequence[Mapping[str, Any]]:
        """Returns the `type`, the `format` and the options of each phase."""

    def start_options(self) -> Mapping[str, Any] | None:
        """Returns the options of `starts`, of the option `start_offsets`; None without it."""
        return None

    @abstractmethod
    def set_phases(self, phases: Sequence[ReplayableSource[Any]]) -> None:
        """Sets `phases`, without those with errors. Called before any other method."""

    @abstractmethod
    def await_receiver(self) -> None:
        """Requires that a last phase that receives does so in this run before the others end.

        Called at the start of a run. Without effect once the ends of the others are stored.
        """

    def phase_state(self, number: int) -> Path | None:
        """Returns the state directory of a phase, counted from 1; None without state."""
        state = self.context.state
        return state / "phases" / str(number) if state is not None else None

    def planned(self, phase: S) -> S:
        """Returns a copy of a phase with the columns, the key and the metadata of the node.

        The operation column is a column of phases that add it.
        """
        made, columns = copy.copy(phase), self.columns
        if columns is not None and self.adds_operations() and not phase.adds_operations():
            columns = columns.remove(columns.get_field_index(self.operation_column))
        made.columns, made.primary_key = columns, self.primary_key
        made.metadata_columns, made.follows_schema = self.metadata_columns, self.follows_schema
        if isinstance(made, ReceivingSource):
            made.chunks_of = self.chunks_of
        return made

    def receiving_phase(self) -> ReceivingSource[Any] | None:
        """Returns the last phase as `planned`; None if it receives no messages."""
        last = self.phases[-1] if self.phases else None
        return self.planned(last) if isinstance(last, ReceivingSource) else None


def receiving_source(component: Component[Any]) -> ReceivingSource[Any] | None:
    """Returns the source that receives the messages of a node: its component or its last phase.

    None if the node receives no messages.
    """
    if isinstance(component, PhasedSource):
        return component.receiving_phase()
    return component if isinstance(component, ReceivingSource) else None

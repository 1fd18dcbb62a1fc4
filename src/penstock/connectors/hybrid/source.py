"""Hybrid source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa

from penstock.connectors.hybrid.bounds import Bounds, check_columns, has_bounds, load_bounds
from penstock.connectors.hybrid.columns import common_columns
from penstock.connectors.hybrid.config import HybridSourceConfig
from penstock.connectors.hybrid.finding import find_bounds
from penstock.connectors.hybrid.phase import PLACES, Phase, has_places
from penstock.core.errors import OptionError, Transient
from penstock.sdk import Capability, Offset, Read, ReceivingSource, ReplayableSource
from penstock.sdk.phases import PhasedSource, PositionedSource


class PhasePartition(NamedTuple):
    """A partition of the phase with a number."""

    phase: int
    value: Any


class HybridSource(PhasedSource[HybridSourceConfig]):
    """Reads other sources one after another: first sources that end, then the last one.

    For example a lake table and then the topic whose records the table has stored. All phases have
    the columns, the primary key and the watermark of the node. A batch has the rows of one phase; a
    query over the whole input reads all phases at once. A run resumes in the phase in which the
    last run has stopped.

    The bounded phases and the start of the last phase are fixed at the first start of the pipeline:
    a bounded phase ends where its input ends then, and the last phase starts at the position that
    its options select then. With `handover` the last phase starts after the records that the
    bounded phases have: no record is missing and none is read twice.

    A last phase that receives messages or changes, as `postgres` with `changes: true` or `mqtt`, is
    received before the ends of the bounded phases are found, so that no record between the two is
    missing. A change that the bounded phases have already is read again: write the rows by their
    primary key. The journal of the phase is filled while the bounded phases are read. A full
    journal applies backpressure, as the source of the phase does.

    If a phase has changes, as with the format `debezium_json` or `changes: true`, the rows of other
    phases are inserts. In a dead letter the name of the origin begins with the number of the phase:
    `1:` for the first one.

    ```yaml
    type: hybrid
    schema: id LONG, city STRING, partition INT, offset LONG
    phases:
      - {type: delta, path: lake/orders}
      - {type: kafka, brokers: "localhost:9092", topic: orders}
    handover: {partition: partition, offset: offset}
    ```
    """

    parallelism = "as the phase that is read"
    acknowledges = "as the phase that is read"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ROWS,
        }
    )
    _known_bounds: Bounds | None = None
    _awaits_receiver = True
    """Whether the bounds are found once the last phase is received, if it receives messages."""

    def phase_options(self) -> Sequence[Mapping[str, Any]]:
        return self.config.phases

    def start_options(self) -> Mapping[str, Any] | None:
        return self.config.start_offsets

    def set_phases(self, phases: Sequence[ReplayableSource[Any]]) -> None:
        self.phases = tuple(phases)
        if len(phases) < len(self.config.phases):
            return
        common = frozenset.intersection(*(phase.capabilities for phase in phases))
        self.capabilities -= {Capability.REPLAY, Capability.LIMIT} - common
        self.carries_operations = any(phase.adds_operations() for phase in phases)
        self.has_complete_changes = all(
            phase.completes_changes() or not phase.adds_operations() for phase in phases
        )
        self.truncates = any(phase.truncates for phase in phases)
        self.declares_primary_key = any(phase.declares_primary_key for phase in phases)

    def await_receiver(self) -> None:
        receiving, directory = self.receiving_phase(), self.context.state
        if receiving is not None and directory is not None and not has_bounds(directory):
            receiving.clear_beginning()

    def with_state(self, state: Path) -> Self:
        new = super().with_state(state)
        new._awaits_receiver = False  # it writes to the state of the pipeline
        new.set_phases(
            [
                phase.with_state(new.phase_state(number) or state)
                for number, phase in enumerate(self.phases, 1)
            ]
        )
        return new

    @property
    def locates_rows(self) -> bool:  # type: ignore[override]
        return all(map(has_places, self.phases))

    @property
    def lag_unit(self) -> str:  # type: ignore[override]
        return self.phases[-1].lag_unit

    @property
    def _last(self) -> str:
        return str(len(self.phases))

    def validate(self) -> None:
        if self.config.skip_last and isinstance(self.phases[-1], ReceivingSource):
            raise OptionError.of(
                "skip_last", message="skip_last requires a last phase that keeps its records, and "
                "this one receives messages",
                hint="Remove skip_last, or the last phase.",
            )  # fmt: skip
        handover = self.config.handover
        option = "start_offsets" if self.config.start_offsets is not None else "handover"
        if handover is None and option == "handover":
            return
        last = self.phases[-1]
        if not isinstance(last, PositionedSource) or last.topic() is None:
            raise OptionError.of(
                option, message=f"{option} requires a last phase of type kafka with one topic",
                hint=f"Remove {option}, and set the start of the last phase in its options.",
            )  # fmt: skip
        if handover is not None and self.columns is not None:
            check_columns(handover, self.columns)

    def check(self) -> None:
        for phase in self.phases:
            phase.check()

    def close(self) -> None:
        for source in (*self.phases, *([self.starts] if self.starts is not None else [])):
            source.close()

    @property
    def _described(self) -> Sequence[ReplayableSource[Any]]:
        """The phases whose columns are those of the node."""
        return self.phases if self.config.columns_of == "all" else self.phases[-1:]

    def schema(self) -> pa.Schema | None:
        known = [phase.columns for phase in self._described]
        return self._common_columns([columns for columns in known if columns is not None])

    def infer_schema(self) -> pa.Schema | None:
        found = [phase.columns or phase.columns_of_sample() for phase in self._described]
        return self._common_columns([columns for columns in found if columns is not None])

    def _common_columns(self, known: Sequence[pa.Schema]) -> pa.Schema | None:
        """Returns the columns of the phases, without operation columns. Raises PlanError."""
        plain = [
            pa.schema([f for f in columns if f.name != self.operation_column], columns.metadata)
            for columns in known
        ]
        return reduce(common_columns, plain) if plain else None

    def infer_primary_key(self) -> tuple[str, ...]:
        keys = (phase.infer_primary_key() for phase in self.phases if phase.declares_primary_key)
        return next((key for key in keys if key), ())

    def metadata_schema(self) -> pa.Schema:
        fields: dict[str, pa.Field] = {}
        for phase in self.phases:
            for field in phase.metadata_schema():
                fields.setdefault(field.name, field.with_nullable(True))
        return pa.schema(list(fields.values()))

    def is_bounded(self) -> bool:
        return bool(self.phases) and (self.config.skip_last or self.phases[-1].is_bounded())

    def reads_once(self) -> bool:
        return any(phase.reads_once() for phase in self.phases)

    def initial_offset(self) -> Offset:
        starts, last = dict(self._bounds.starts), self.phases[-1]
        # A journal begins after the messages that all queries have written.
        begin = {self._last: last.initial_offset()} if isinstance(last, ReceivingSource) else {}
        return {**starts, **begin}

    def latest_offset(self, start: Offset) -> Offset:
        latest = start[self._last]
        if not self.config.skip_last:
            latest = self.phases[-1].latest_offset(latest)
        return {**self._bounds.ends, self._last: latest}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        for number, phase in self._numbered():
            if start[number] != end[number]:
                return {**start, number: phase.limit_batch(start[number], end[number])}
        return end

    def begins_truncated(self, start: Offset, end: Offset) -> bool:
        return self.phases[-1].begins_truncated(start[self._last], end[self._last])

    def schema_change(self, start: Offset, end: Offset) -> Offset | None:
        last = self.planned(self.phases[-1])
        change = last.schema_change(start[self._last], end[self._last])
        return None if change is None else {**end, self._last: change}

    def changed_columns(self) -> pa.Schema | None:
        return self.planned(self.phases[-1]).changed_columns()

    def partitions(self, start: Offset, end: Offset) -> Sequence[PhasePartition]:
        return [
            PhasePartition(int(number), value)
            for number, phase in self._numbered()
            if start[number] != end[number]
            for value in phase.partitions(start[number], end[number])
        ]

    def read(self, partition: PhasePartition, read: Read) -> Iterator[pa.RecordBatch]:
        return self._phase(partition.phase).rows(partition.value, read, self._metadata_types())

    def commit(self, end: Offset) -> None:
        for number, phase in self._numbered():
            phase.commit(end[number])

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return {
            number: phase.min_offset(first[number], second[number])
            for number, phase in self._numbered()
        }

    def lag(self, current: Offset, latest: Offset) -> int | None:
        lags = [
            phase.lag(current[number], latest[number])
            for number, phase in self._numbered()
            if current[number] != latest[number] or number == self._last
        ]
        known = [lag for lag in lags if lag is not None]
        one_unit = len(lags) == 1 or len({phase.lag_unit for phase in self.phases}) == 1
        return sum(known) if one_unit and len(known) == len(lags) else None

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        return self._phase(_number(origin)).record(payload, origin, position, None)

    def decode_with_header(
        self, payload: bytes, origin: str, position: int, header: bytes
    ) -> pa.RecordBatch:
        return self._phase(_number(origin)).record(payload, origin, position, header)

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        phase = self._phase(_number(origin))
        known = phase.source.record_metadata(phase.without_number(origin), position)
        return {**known, "origin": origin}

    def _numbered(self) -> Iterator[tuple[str, ReplayableSource[Any]]]:
        """Yields the number of each phase, as in offsets, and its source."""
        return ((str(number), phase) for number, phase in enumerate(self.phases, 1))

    def _phase(self, number: int) -> Phase:
        return Phase(self, number)

    def _metadata_types(self) -> pa.Schema:
        known = self.metadata_schema()
        return pa.schema([*known, *(field for field in PLACES if field.name not in known.names)])

    @property
    def _bounds(self) -> Bounds:
        if self._known_bounds is None:
            directory = self.context.state
            self._known_bounds = (
                self._find_bounds()
                if directory is None
                else load_bounds(directory, self._find_bounds)
            )
        return self._known_bounds

    def _find_bounds(self) -> Bounds:
        if self._awaits_receiver:
            receiving = self.receiving_phase()
            if receiving is not None and not receiving.has_begun():
                raise Transient(
                    f'the last phase of "{self.context.node}" is not received yet',
                    code="not-received", hint="Run the pipeline: its receiver begins then.",
                )  # fmt: skip
        return find_bounds(self, self.config.handover)


def _number(origin: str) -> int:
    return int(origin.partition(":")[0])

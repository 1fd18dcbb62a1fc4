"""The source of topics whose messages are read by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.pulsar.about import METADATA, about, payload
from penstock.connectors.pulsar.client import using
from penstock.connectors.pulsar.config import PulsarSourceConfig, StartAt
from penstock.connectors.pulsar.position import NONE, Id, ids, json
from penstock.connectors.pulsar.progress import hold, let_go
from penstock.connectors.pulsar.reading import Range, gathered, messages
from penstock.connectors.pulsar.topics import each, last, partitions, since
from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import Capability, Offset, Read, ReplayableSource

if TYPE_CHECKING:
    from pulsar import Message


class TopicSource(ReplayableSource[PulsarSourceConfig]):
    """Reads each partition by itself."""

    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.BYTES,
        }
    )
    extra = "pulsar"
    clients = ("pulsar",)
    parallelism = "a partition of a topic"
    acknowledges: str | None = "with `subscription`, once the batch is in all sinks"
    unit = "messages"

    def metadata(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        with using(self.config, self._doing("find")) as client:
            partitions(client, self.config.topics)

    def sample(self, most: int) -> pa.BinaryArray:
        with using(self.config, self._doing("read")) as client:
            ends = self._ends({})
            found = chain.from_iterable(
                messages(client, Range(name, NONE, end), self.config.timeout)
                for name, end in ends.items()
            )
            return pa.array([payload(message) for message in islice(found, most)], pa.binary())

    def initial(self) -> Offset:
        start, timeout = self.config.start, self.config.timeout
        with using(self.config, self._doing("find where to start")) as client:
            names = partitions(client, self.config.topics)
            if self.config.subscription is not None:
                hold(client, names, self.config.subscription)
            if isinstance(start, StartAt):
                at = start.timestamp
                return json(each(lambda name: since(client, name, at, timeout), names))
        return json(dict.fromkeys(names, NONE) if start == "earliest" else self._ends({}))

    def latest(self, start: Offset) -> Offset:
        return json(self._ends(ids(start)))

    def advance(self, start: Offset, end: Offset) -> Offset:
        most, begun = self.config.max_records, ids(start)
        if most is None:
            return end
        reached = dict(begun)
        for range_ in self._ranges(start, end):
            with using(self.config, self._doing("look ahead")) as client:
                found = messages(client, range_, self.config.timeout)
                some = [Id.of(message.message_id()) for message in islice(found, most)]
            most -= len(some)
            reached[range_.partition] = some[-1] if some and not most else range_.end
            if not most:
                return json({**dict.fromkeys(ids(end), NONE), **reached})
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        return self._ranges(start, end)

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        at = partition.start
        with using(self.config, self._doing("read")) as client:
            for some in gathered(messages(client, partition, self.config.timeout)):
                at = Id.of(some[-1].message_id())
                yield self._batch(partition.partition, some, read.metadata)
        if at != partition.end:
            self._lost(partition, at, read)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError(f"messages of {origin} are gone", code="data-gone")
        return super().decode(payload, origin, position)

    def commit(self, end: Offset) -> None:
        if self.config.subscription is not None:
            with using(self.config, self._doing("acknowledge")) as client:
                let_go(client, ids(end), self.config.subscription)

    def earlier(self, one: Offset, other: Offset) -> Offset:
        ours, theirs = ids(one), ids(other)
        return json({name: min(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()})

    def _ends(self, known: Mapping[str, Id]) -> dict[str, Id]:
        timeout = self.config.timeout
        with using(self.config, self._doing("find the end")) as client:
            names = partitions(client, self.config.topics)
            return each(lambda name: last(client, name, known.get(name, NONE), timeout), names)

    def _ranges(self, start: Offset, end: Offset) -> list[Range]:
        begun = ids(start)
        found = [Range(name, begun.get(name, NONE), to) for name, to in ids(end).items()]
        return [range_ for range_ in found if range_.start < range_.end]

    def _batch(
        self, partition: str, some: Sequence[Message], metadata: Sequence[str]
    ) -> pa.RecordBatch:
        columns = [
            pa.array([payload(message) for message in some], pa.binary()),
            pa.repeat(partition, len(some)),
            pa.array([Id.of(message.message_id()).number for message in some], pa.int64()),
        ]
        columns += [
            pa.array([about(message, name) for message in some], METADATA.field(name).type)
            for name in metadata
        ]
        return pa.RecordBatch.from_arrays(columns, ["payload", "origin", "position", *metadata])

    def _lost(self, range_: Range, at: Id, read: Read) -> None:
        what = f'messages of "{range_.partition}" are gone: those after {at} up to {range_.end}'
        if self.config.on_data_loss == "fail":
            raise Permanent(
                what,
                code="data-gone",
                hint="on_data_loss: skip goes on with what is there; subscription: NAME keeps them",
            )
        read.reject(None, range_.partition, range_.end.number, DecodeError(what, code="data-gone"))

    def _doing(self, what: str) -> str:
        return f'{what}: topic "{", ".join(self.config.topics)}"'

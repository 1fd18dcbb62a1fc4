"""Streams that are read by ranges of ids."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.redis import entries
from penstock.connectors.redis.connection import client, connected
from penstock.connectors.redis.faults import faults
from penstock.connectors.redis.ids import BEGIN, Id
from penstock.connectors.redis.options import RedisSourceConfig, names
from penstock.sdk import (
    Capability,
    DecodeError,
    Offset,
    Permanent,
    Read,
    ReplayableSource,
    Transient,
)

PAGE_BYTES = 4 << 20
"""What is fetched at once, roughly."""
PAGE = 10_000
_FIRST_PAGE = 100


class StreamSource(ReplayableSource[RedisSourceConfig]):
    """Streams whose entries are read by their ids; a position is the last id of each stream."""

    parallelism = "a stream"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.BYTES,
        }
    )
    extra = "redis"
    clients = ("redis",)
    _made: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    def metadata(self) -> pa.Schema:
        return entries.METADATA

    def check(self) -> None:
        with connected(self.config) as client:
            for stream in self._streams:
                client.exists(stream)

    def sample(self, most: int) -> pa.BinaryArray:
        with self._client() as client:
            found = [e for each in self._streams for e in client.xrange(each, count=most)]
        payloads = [entries.payload(fields, self.config.field) for _, fields in found[:most]]
        return pa.array(payloads, pa.binary())

    def initial(self) -> Offset:
        start = self.config.start
        if start not in ("earliest", "latest"):
            return _offset(dict.fromkeys(self._streams, Id.of(start).before))
        extents = self._extents()
        if start == "latest":
            return _offset({stream: each.last for stream, each in extents.items()})
        return _offset({stream: each.begin for stream, each in extents.items()})

    def latest(self, start: Offset) -> Offset:
        begun = _ids(start)
        extents = self._extents()
        for stream, each in extents.items():
            at = begun.get(stream, BEGIN)
            if self.config.on_data_loss == "fail" and each.lacks(at):
                raise _lost(stream, at)
        return _offset({
            stream: max(each.last, begun.get(stream, BEGIN)) for stream, each in extents.items()
        })  # fmt: skip

    def advance(self, start: Offset, end: Offset) -> Offset:
        most = self.config.max_records
        if most is None:
            return end
        ranges = self.partitions(start, end)
        with self._client() as client:
            found = [_page(client, *each, most + 1) for each in ranges]
        pages = [
            [(id_, each.stream) for id_, _ in page]
            for each, page in zip(ranges, found, strict=True)
        ]
        oldest = list(islice(heapq.merge(*pages), most + 1))
        if len(oldest) <= most:
            return end
        taken = {each.stream: each.after for each in ranges}
        taken |= {stream: id_ for id_, stream in oldest[:most]}
        return _offset(_ids(end) | taken)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        begun = _ids(start)
        found = [Range(name, begun.get(name, BEGIN), to) for name, to in _ids(end).items()]
        return [each for each in found if each.after < each.to]

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        stream, at, to = partition
        count = _FIRST_PAGE
        with self._client() as client:
            if _extent(client, stream).lacks(at):
                if self.config.on_data_loss == "fail":
                    raise _lost(stream, at)
                gone = DecodeError(f"what came after {at} of {stream} is gone", code="data-gone")
                read.reject(None, _origin(stream, at), at.position, gone)
            while page := _page(client, stream, at, to, count):
                batch = self._batch(stream, page, read)
                yield batch
                at = page[-1][0]
                size = max(1, batch.column("payload").nbytes // len(page))
                count = min(PAGE, max(1, PAGE_BYTES // size))

    def earlier(self, one: Offset, other: Offset) -> Offset:
        there = _ids(other)
        return _offset({s: min(id_, there[s]) for s, id_ in _ids(one).items() if s in there})

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None

    @contextmanager
    def _client(self) -> Iterator[Any]:
        """The client that is kept, until it fails."""
        try:
            with faults(self.config):
                if self._made is None:
                    self._made = client(self.config)
                yield self._made
        except (Transient, Permanent):
            self.close()
            raise

    @property
    def _streams(self) -> tuple[str, ...]:
        return names(self.config.stream)

    def _extents(self) -> dict[str, Extent]:
        with self._client() as client:
            return {stream: _extent(client, stream) for stream in self._streams}

    def _batch(self, stream: str, page: Sequence[Entry], read: Read) -> pa.RecordBatch:
        field = self.config.field
        known = [entries.about(stream, *entry, field) for entry in page] if read.metadata else []
        columns = [
            pa.array([entries.payload(fields, field) for _, fields in page], pa.binary()),
            pa.array([_origin(stream, id_) for id_, _ in page], pa.string()),
            pa.array([id_.position for id_, _ in page], pa.int64()),
            *(
                pa.array([each[name] for each in known], entries.METADATA.field(name).type)
                for name in read.metadata
            ),
        ]
        return pa.RecordBatch.from_arrays(
            columns, names=["payload", "origin", "position", *read.metadata]
        )


class Range(NamedTuple):
    """The entries of a stream that come after one id, up to another and with it."""

    stream: str
    after: Id
    to: Id


class Extent(NamedTuple):
    """The first entry of a stream, the last id that it gave, and the last that was deleted."""

    first: Id | None
    last: Id
    deleted: Id

    @property
    def begin(self) -> Id:
        """Before what there is."""
        return self.last if self.first is None else self.first.before

    def lacks(self, after: Id) -> bool:
        """Whether what came next after an id is not there any more, or all of the stream is not."""
        trimmed = after < self.deleted and (self.first is None or self.deleted < self.first)
        return trimmed or self.last < after


Entry = tuple[Id, Mapping[bytes, bytes]]


def _extent(client: Any, stream: str) -> Extent:
    from redis.exceptions import ResponseError

    try:
        said = client.xinfo_stream(stream)
    except ResponseError as error:
        if "no such key" not in str(error):
            raise
        return Extent(None, BEGIN, BEGIN)
    first = said["first-entry"]
    return Extent(
        Id.of(first[0]) if first else None,
        Id.of(said["last-generated-id"]),
        Id.of(said.get("max-deleted-entry-id", b"0-0")),
    )


def _page(client: Any, stream: str, after: Id, to: Id, count: int) -> list[Entry]:
    found = client.xrange(stream, f"({after}", str(to), count)
    return [(Id.of(id_), fields) for id_, fields in found]


def _origin(stream: str, id_: Id) -> str:
    """What names an entry in dead letters, together with the number of its id."""
    return f"{stream}:{id_.milliseconds}"


def _lost(stream: str, at: Id) -> Permanent:
    return Permanent(
        f'entries of stream "{stream}" after {at} are gone: trimmed before they were read, or the '
        "stream was made again",
        code="data-gone",
        hint="on_data_loss: skip goes on with what is there; --fresh starts over",
    )


def _ids(offset: Offset) -> dict[str, Id]:
    return {stream: Id.of(text) for stream, text in offset["streams"].items()}


def _offset(ids: Mapping[str, Id]) -> Offset:
    return {"streams": {stream: str(id_) for stream, id_ in sorted(ids.items())}}

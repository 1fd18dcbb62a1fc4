"""Streams that are read by ranges of entry IDs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.redis.client import connection, pooled_connection
from penstock.connectors.redis.config import RedisSourceConfig, RedisStartAt, split_names
from penstock.connectors.redis.metadata import (
    METADATA,
    entry_metadata,
    entry_payload,
    entry_size,
    identity_metadata,
)
from penstock.connectors.redis.offsets import ZERO, EntryId, ids_of, offset_of
from penstock.connectors.redis.page_size import PageSize
from penstock.sdk import Capability, DecodeError, Offset, Permanent, Read, ReplayableSource
from penstock.sdk.messages.size_limit import reject_larger

_MAX_PAGE_ENTRIES = 10_000


class StreamSource(ReplayableSource[RedisSourceConfig]):
    """Reads streams by ID. An offset is the last ID that was read of each stream."""

    partitioned = True
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
    client_modules = ("redis",)

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        with connection(self.config) as client:
            for stream in self._streams:
                client.exists(stream)

    def sample(self, max_records: int) -> pa.BinaryArray:
        with pooled_connection(self.config) as client:
            entries = [
                entry for name in self._streams for entry in client.xrange(name, count=max_records)
            ]
        payloads = [entry_payload(fields, self.config.field) for _, fields in entries[:max_records]]
        return pa.array(payloads, pa.binary())

    def initial_offset(self) -> Offset:
        start = self.config.start
        if isinstance(start, RedisStartAt):
            return offset_of(dict.fromkeys(self._streams, start.first_id.previous))
        extents = self._extents()
        if start == "latest":
            return offset_of({stream: extent.last for stream, extent in extents.items()})
        return offset_of({stream: extent.start for stream, extent in extents.items()})

    def latest_offset(self, start: Offset) -> Offset:
        last_ids = ids_of(start)
        extents = self._extents()
        for stream, extent in extents.items():
            after = last_ids.get(stream, ZERO)
            if self.config.on_data_loss == "fail" and extent.has_gap(after):
                raise _data_loss_error(stream, after)
        return offset_of({
            stream: max(extent.last, last_ids.get(stream, ZERO))
            for stream, extent in extents.items()
        })  # fmt: skip

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limit = self.config.max_records
        if limit is None:
            return end
        ranges = self.partitions(start, end)
        with pooled_connection(self.config) as client:
            pages = [_read_page(client, *range_, limit + 1) for range_ in ranges]
        ids = [
            [(id_, range_.stream) for id_, _ in page]
            for range_, page in zip(ranges, pages, strict=True)
        ]
        oldest = list(islice(heapq.merge(*ids), limit + 1))
        if len(oldest) <= limit:
            return end
        limited = {range_.stream: range_.after for range_ in ranges}
        limited |= {stream: id_ for id_, stream in oldest[:limit]}
        return offset_of(ids_of(end) | limited)

    def partitions(self, start: Offset, end: Offset) -> Sequence[IdRange]:
        last_ids = ids_of(start)
        ranges = [
            IdRange(name, last_ids.get(name, ZERO), last) for name, last in ids_of(end).items()
        ]
        return [range_ for range_ in ranges if range_.after < range_.last]

    def read(self, partition: IdRange, read: Read) -> Iterator[pa.RecordBatch]:
        stream, after, last = partition
        page_size = PageSize(_MAX_PAGE_ENTRIES)
        with pooled_connection(self.config) as client:
            if _read_extent(client, stream).has_gap(after):
                if self.config.on_data_loss == "fail":
                    raise _data_loss_error(stream, after)
                gap = DecodeError(
                    f'entries of stream "{stream}" after {after} were removed before they were '
                    "read",
                    code="data-gone",
                )
                read.reject(None, _origin(stream, after), after.position, gap)
            while page := _read_page(client, stream, after, last, page_size.entries):
                batch = self._batch(stream, page, read)
                after = page[-1][0]
                page_size.update([entry_size(fields) for _, fields in page])
                yield reject_larger(batch, self.config.max_message_size, read)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = ids_of(first), ids_of(second)
        return offset_of({name: min(left[name], right[name]) for name in left if name in right})

    def partition_offsets(self, offset: Offset) -> Mapping[str, str]:
        streams: Mapping[str, str] = offset["streams"]
        return streams

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        stream, _, milliseconds = origin.rpartition(":")
        return identity_metadata(stream, EntryId.at_position(int(milliseconds), position))

    def partition_of(self, origin: str) -> str:
        return origin.rpartition(":")[0]

    @property
    def _streams(self) -> tuple[str, ...]:
        return split_names(self.config.stream)

    def _extents(self) -> dict[str, Extent]:
        with pooled_connection(self.config) as client:
            return {stream: _read_extent(client, stream) for stream in self._streams}

    def _batch(self, stream: str, page: Sequence[Entry], read: Read) -> pa.RecordBatch:
        field = self.config.field
        metadata = [entry_metadata(stream, *entry, field) for entry in page if read.metadata]
        columns = [
            pa.array([entry_payload(fields, field) for _, fields in page], pa.binary()),
            pa.array([_origin(stream, id_) for id_, _ in page], pa.string()),
            pa.array([id_.position for id_, _ in page], pa.int64()),
            *(
                pa.array([values[name] for values in metadata], METADATA.field(name).type)
                for name in read.metadata
            ),
        ]
        return pa.RecordBatch.from_arrays(
            columns, names=["payload", "origin", "position", *read.metadata]
        )


class IdRange(NamedTuple):
    """The entries of a stream after one ID, up to and including another."""

    stream: str
    after: EntryId
    last: EntryId


class Extent(NamedTuple):
    """The first entry of a stream, its last generated ID, and its highest deleted ID."""

    first: EntryId | None
    last: EntryId
    deleted: EntryId

    @property
    def start(self) -> EntryId:
        """The ID below the first entry."""
        return self.last if self.first is None else self.first.previous

    def has_gap(self, after: EntryId) -> bool:
        """Returns whether entries after an ID were trimmed, or the stream was recreated."""
        trimmed = after < self.deleted and (self.first is None or self.deleted < self.first)
        return trimmed or self.last < after


Entry = tuple[EntryId, Mapping[bytes, bytes]]


def _read_extent(client: Any, stream: str) -> Extent:
    from redis.exceptions import ResponseError

    try:
        info = client.xinfo_stream(stream)
    except ResponseError as error:
        if "no such key" not in str(error):
            raise
        return Extent(None, ZERO, ZERO)
    first = info["first-entry"]
    return Extent(
        EntryId.parse(first[0]) if first else None,
        EntryId.parse(info["last-generated-id"]),
        EntryId.parse(info.get("max-deleted-entry-id", b"0-0")),
    )


def _read_page(client: Any, stream: str, after: EntryId, last: EntryId, count: int) -> list[Entry]:
    page = client.xrange(stream, f"({after}", str(last), count)
    return [(EntryId.parse(id_), fields) for id_, fields in page]


def _origin(stream: str, id_: EntryId) -> str:
    """Returns the origin of an entry. It is unique together with the entry's position."""
    return f"{stream}:{id_.milliseconds}"


def _data_loss_error(stream: str, after: EntryId) -> Permanent:
    return Permanent(
        f'entries of stream "{stream}" after {after} were trimmed before they were read, or the '
        "stream was recreated",
        code="data-gone",
        hint="Set on_data_loss: continue to read the remaining entries, or reset with --fresh.",
    )

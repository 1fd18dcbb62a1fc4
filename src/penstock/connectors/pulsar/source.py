"""Pulsar source: topics read by message ID, or messages of a subscription."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.pulsar.admin import list_topics
from penstock.connectors.pulsar.client import use_client
from penstock.connectors.pulsar.config import PulsarSourceConfig, PulsarStartAt
from penstock.connectors.pulsar.metadata import (
    METADATA,
    message_metadata,
    message_payload,
    partition_metadata,
)
from penstock.connectors.pulsar.offsets import (
    BEFORE_FIRST,
    MessagePosition,
    offset_json,
    parse_offset,
)
from penstock.connectors.pulsar.reader import (
    Range,
    acknowledge,
    batch_messages,
    create_subscription,
    last_position,
    list_partitions,
    map_partitions,
    position_at_time,
    read_range,
)
from penstock.connectors.pulsar.receiver import SubscriptionSource
from penstock.core.errors import DecodeError, Permanent
from penstock.sdk import (
    Capability,
    Component,
    Context,
    Offset,
    Read,
    ReceivingSource,
    ReplayableSource,
    Source,
)
from penstock.sdk.messages.listing import ListedTopics
from penstock.sdk.messages.size_limit import reject_larger

if TYPE_CHECKING:
    from pulsar import Client, Message


class PulsarSource(Source[PulsarSourceConfig], ListedTopics):
    """Reads topics of Apache Pulsar.

    * Without `subscription_type` the source reads by message ID and stores the offsets in the
      pipeline's state. Set `subscription`, so that Pulsar retains the messages until they are
      written. Without a subscription, messages that the retention policy deletes while the
      pipeline is stopped are lost and not reported.
    * With `subscription_type` the source consumes messages of the subscription. Each message goes
      to one of the consumers of the subscription.

    ```yaml
    type: pulsar
    url: pulsar://localhost:6650
    topic: persistent://public/default/orders
    subscription: orders-pipeline
    metadata: [key, publish_time, headers]
    ```
    """

    variants = ("topic: orders", "subscription: workers, subscription_type: shared")
    capabilities = ReceivingSource.capabilities
    extra = "pulsar"
    client_modules = ("pulsar",)

    @classmethod
    def create(
        cls, config: PulsarSourceConfig, context: Context | None = None
    ) -> Component[PulsarSourceConfig]:
        if config.consumes:
            return SubscriptionSource(config, context)
        return TopicSource(config, context)

    @classmethod
    def topic_names(cls, config: PulsarSourceConfig, option: str) -> list[str]:
        return list_topics(config)


class TopicSource(ReplayableSource[PulsarSourceConfig]):
    """Reads the partitions of topics by message ID."""

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
    client_modules = ("pulsar",)
    partitioned = True
    parallelism = "a partition of a topic"
    acknowledges: str | None = "with `subscription`, once the batch is in all sinks"
    lag_unit = "messages"

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        with use_client(self.config, self._action("find")) as client:
            list_partitions(client, self.config.topics)

    def sample(self, max_records: int) -> pa.BinaryArray:
        with use_client(self.config, self._action("read")) as client:
            messages = chain.from_iterable(
                read_range(client, Range(name, BEFORE_FIRST, end), self.config.timeout)
                for name, end in self._ends({}).items()
            )
            payloads = [message_payload(message) for message in islice(messages, max_records)]
            return pa.array(payloads, pa.binary())

    def initial_offset(self) -> Offset:
        start = self.config.start
        with use_client(self.config, self._action("find the start")) as client:
            names = list_partitions(client, self.config.topics)
            if self.config.subscription is not None:
                create_subscription(client, names, self.config.subscription)
            if isinstance(start, PulsarStartAt):
                return offset_json(self._start_positions(client, start, names))
        if start == "earliest":
            return offset_json(dict.fromkeys(names, BEFORE_FIRST))
        return offset_json(self._ends({}))

    def latest_offset(self, start: Offset) -> Offset:
        return offset_json(self._ends(parse_offset(start)))

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        remaining, positions = self.config.max_records, parse_offset(start)
        if remaining is None:
            return end
        for range_ in self._ranges(start, end):
            with use_client(self.config, self._action("read ahead")) as client:
                messages = read_range(client, range_, self.config.timeout)
                ids = [message.message_id() for message in islice(messages, remaining)]
            remaining -= len(ids)
            limited = bool(ids) and not remaining
            positions[range_.partition] = MessagePosition.of(ids[-1]) if limited else range_.end
            if not remaining:
                unread = dict.fromkeys(parse_offset(end), BEFORE_FIRST)
                return offset_json({**unread, **positions})
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        return self._ranges(start, end)

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        position = partition.start
        with use_client(self.config, self._action("read")) as client:
            messages = read_range(client, partition, self.config.timeout)
            for batch in batch_messages(messages):
                position = MessagePosition.of(batch[-1].message_id())
                rows = self._record_batch(partition.partition, batch, read.metadata)
                yield reject_larger(rows, self.config.max_message_size, read)
        if position != partition.end:
            self._report_data_loss(partition, position, read)

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        if payload is None:
            raise DecodeError(f"messages of {origin} were deleted", code="data-gone")
        return super().decode(payload, origin, position)

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        return partition_metadata(origin)

    def commit(self, end: Offset) -> None:
        if self.config.subscription is not None:
            with use_client(self.config, self._action("acknowledge")) as client:
                acknowledge(client, parse_offset(end), self.config.subscription)

    def partition_offsets(self, offset: Offset) -> Offset:
        return offset

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = parse_offset(first), parse_offset(second)
        common = left.keys() & right.keys()
        return offset_json({name: min(left[name], right[name]) for name in common})

    def _start_positions(
        self, client: Client, start: PulsarStartAt, partitions: Sequence[str]
    ) -> dict[str, MessagePosition]:
        """Returns the positions before the first message to read of each partition."""
        time = start.time
        if time is not None:
            timeout = self.config.timeout
            return map_partitions(
                lambda name: position_at_time(client, name, time, timeout), partitions
            )
        offsets = start.offset or {}
        unknown = offsets.keys() - set(partitions)
        if unknown:
            raise Permanent(
                f'cannot start at an offset of "{min(unknown)}": expected a partition of topic',
                code="unknown-partition",
                hint=f"Use one of {', '.join(partitions)}.",
            )
        positions = {
            name: MessagePosition.parse(text).predecessor() for name, text in offsets.items()
        }
        return {**dict.fromkeys(partitions, BEFORE_FIRST), **positions}

    def _ends(self, starts: Mapping[str, MessagePosition]) -> dict[str, MessagePosition]:
        timeout = self.config.timeout
        with use_client(self.config, self._action("find the end")) as client:
            return map_partitions(
                lambda name: last_position(client, name, starts.get(name, BEFORE_FIRST), timeout),
                list_partitions(client, self.config.topics),
            )

    def _ranges(self, start: Offset, end: Offset) -> list[Range]:
        starts = parse_offset(start)
        ranges = [
            Range(name, starts.get(name, BEFORE_FIRST), last)
            for name, last in parse_offset(end).items()
        ]
        return [range_ for range_ in ranges if range_.start < range_.end]

    def _record_batch(
        self, partition: str, messages: Sequence[Message], metadata: Sequence[str]
    ) -> pa.RecordBatch:
        numbers = [MessagePosition.of(message.message_id()).number for message in messages]
        columns = [
            pa.array([message_payload(message) for message in messages], pa.binary()),
            pa.repeat(partition, len(messages)),
            pa.array(numbers, pa.int64()),
        ]
        columns += [
            pa.array([message_metadata(message, name) for message in messages], field.type)
            for name in metadata
            for field in [METADATA.field(name)]
        ]
        return pa.RecordBatch.from_arrays(columns, ["payload", "origin", "position", *metadata])

    def _report_data_loss(self, range_: Range, position: MessagePosition, read: Read) -> None:
        message = (
            f'messages of "{range_.partition}" were deleted before they were read: '
            f"after {position} up to {range_.end}"
        )
        if self.config.on_data_loss == "fail":
            raise Permanent(
                message,
                code="data-gone",
                hint="Set on_data_loss: continue to read the remaining messages. Set "
                "subscription to retain unread messages.",
            )
        error = DecodeError(message, code="data-gone")
        read.reject(None, range_.partition, range_.end.number, error)

    def _action(self, verb: str) -> str:
        return f'{verb}: topic "{", ".join(self.config.topics)}"'

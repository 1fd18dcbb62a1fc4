"""The bounds of received messages and of the batches that are read from a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.journal import Bounds, Journal, JournalReader, Message
from penstock.journal.reader import MAX_BATCH_BYTES
from penstock.journal.segment import list_segments
from penstock.sdk import Context, Read, ReceivingConfig, ReceivingSource, registry

HEAD = 1024


class ListedSource(ReceivingSource[ReceivingConfig]):
    """A source that receives the messages of a list."""

    messages: Sequence[Message] = ()

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("topic", pa.string()), ("parts", pa.list_(pa.binary()))])

    async def receive(self, journal: Journal) -> None:
        await journal.append(self.messages[:1])
        await journal.take(self.messages[1:2])
        assert journal.offer(self.messages[2:])


def received(
    directory: Path, messages: Sequence[Message], **options: Any
) -> tuple[list[Any], Read]:
    """Returns the rows and the parameters of a read after the messages were received."""
    source = ListedSource(ReceivingConfig.model_validate(options), Context(state=directory))
    source.messages = messages
    with source.journal() as journal:
        asyncio.run(source.receive(journal))
    start = source.initial_offset()
    read = Read(metadata=("topic",))
    rows = [
        row
        for partition in source.partitions(start, source.latest_offset(start))
        for batch in source.read(partition, read)
        for row in batch.to_pylist()
    ]
    return rows, read


@pytest.mark.parametrize("index", range(3))
def test_a_message_over_the_bound_is_a_dead_letter(tmp_path: Path, index: int) -> None:
    messages = [Message(b"%d" % number, {"topic": "t"}) for number in range(5)]
    messages[index] = Message(b"x" * 5_001, {"topic": "t"})
    rows, read = received(tmp_path, messages, max_message_size="5KB")
    expected = [number for number in range(5) if number != index]
    assert [(row["position"], row["payload"]) for row in rows] == [
        (number, b"%d" % number) for number in expected
    ]
    (record,) = read.bad
    assert (record.position, record.payload) == (index, b"x" * HEAD)
    assert record.error.code == "too-large" and "max_message_size" in str(record.error.hint)


def test_a_message_of_the_size_of_the_bound(tmp_path: Path) -> None:
    rows, read = received(tmp_path, [Message(b"x" * 5_000, {"topic": "t"})], max_message_size=5_000)
    assert len(rows) == 1 and not read.bad


def test_a_message_over_half_of_the_journal(tmp_path: Path) -> None:
    messages = [Message(b"x" * (2 << 20)), Message(b"small")]
    rows, read = received(tmp_path, messages, journal={"max_size": "1MiB"})
    assert [row["payload"] for row in rows] == [b"small"] and len(read.bad) == 1


def test_large_metadata(tmp_path: Path) -> None:
    messages = [Message(b"", {"topic": "t", "parts": [b"x" * (2 << 20)]}), Message(b"small")]
    rows, read = received(tmp_path, messages, max_message_size="1MB")
    assert [row["payload"] for row in rows] == [b"small"] and len(read.bad) == 1


@pytest.mark.slow
def test_batches_of_a_journal_are_bounded_in_bytes(tmp_path: Path) -> None:
    schema = pa.schema([("payload", pa.binary())])
    payload = b"x" * (MAX_BATCH_BYTES // 4)
    with Journal(tmp_path, schema) as journal:
        asyncio.run(journal.append([Message(payload)] * 10))
    batches = list(JournalReader(tmp_path).read(0, 10))
    positions = [first for first, _ in batches]
    assert positions == sorted(positions) and sum(batch.num_rows for _, batch in batches) == 10
    assert len(batches) > 2 and all(batch.nbytes <= MAX_BATCH_BYTES for _, batch in batches)


def test_appends_of_a_group_are_divided_into_frames(tmp_path: Path) -> None:
    async def append_together(journal: Journal) -> None:
        await asyncio.gather(*(journal.append([Message(b"x" * 1_000)]) for _ in range(20)))

    schema = pa.schema([("payload", pa.binary())])
    with Journal(tmp_path, schema, Bounds(frame=3_000)) as journal:
        asyncio.run(append_together(journal))
    (segment,) = list_segments(tmp_path)
    frames = list(segment.frames())
    assert sum(frame.rows for frame in frames) == 20 and max(frame.rows for frame in frames) <= 2


@pytest.mark.parametrize("type_", registry.types("source"))
def test_every_receiving_source_has_a_bound(type_: str) -> None:
    component = registry.find("source", type_)
    if issubclass(component, ReceivingSource):
        field = component.config_type.model_fields["max_message_size"]
        assert field.default and field.default <= 64 << 20

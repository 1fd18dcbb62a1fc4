"""Receives messages of an SQS queue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from penstock.connectors.aws.sqs.config import SqsSourceConfig
from penstock.sdk import Journal, Message
from penstock.sdk.aws.queue import MAX_MESSAGES, Queue

T = TypeVar("T")

METADATA = pa.schema(
    [
        ("message_id", pa.string()),
        ("sent", pa.timestamp("ms", tz="UTC")),
        ("receive_count", pa.int32()),
        ("message_group", pa.string()),
        ("deduplication_id", pa.string()),
        ("sequence_number", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
        ("binary_headers", pa.map_(pa.string(), pa.binary())),
    ]
)


async def poll(queue: Queue, config: SqsSourceConfig, journal: Journal) -> None:
    """Receives, journals and deletes messages until cancelled."""
    while True:
        response = await run_in_thread(
            lambda: queue.call(
                "receive_message",
                MaxNumberOfMessages=MAX_MESSAGES,
                WaitTimeSeconds=round(config.wait),
                VisibilityTimeout=round(config.visibility_timeout),
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        )
        if messages := response.get("Messages"):
            await _append(queue, config, journal, messages)
            receipts = _receipts(messages)
            await run_in_thread(partial(queue.call, "delete_message_batch", Entries=receipts))


async def run_in_thread(call: Callable[[], T]) -> T:
    """Returns the result of a blocking call on a daemon thread.

    Unlike `asyncio.to_thread`, the process may end before the call does.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as exception:
            error = exception
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


async def _append(
    queue: Queue, config: SqsSourceConfig, journal: Journal, messages: Sequence[dict[str, Any]]
) -> None:
    """Appends messages to the journal. Extends their visibility timeout until they are written."""
    seconds = round(config.visibility_timeout)
    append = asyncio.ensure_future(journal.append([_message(message) for message in messages]))
    entries = [{**entry, "VisibilityTimeout": seconds} for entry in _receipts(messages)]
    try:
        while not (await asyncio.wait([append], timeout=seconds / 2))[0]:
            await run_in_thread(
                lambda: queue.call("change_message_visibility_batch", Entries=entries)
            )
    finally:
        append.cancel()
    await append


def _receipts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
        for index, message in enumerate(messages)
    ]


def _message(message: Mapping[str, Any]) -> Message:
    system = message.get("Attributes", {})
    attributes = message.get("MessageAttributes", {})
    return Message(
        message["Body"].encode(),
        {
            "message_id": message["MessageId"],
            "sent": datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
            "receive_count": int(system["ApproximateReceiveCount"]),
            "message_group": system.get("MessageGroupId"),
            "deduplication_id": system.get("MessageDeduplicationId"),
            "sequence_number": system.get("SequenceNumber"),
            "headers": _values(attributes, "StringValue"),
            "binary_headers": _values(attributes, "BinaryValue"),
        },
    )


def _values(attributes: Mapping[str, Any], kind: str) -> list[tuple[str, Any]]:
    return [(name, value[kind]) for name, value in attributes.items() if kind in value]

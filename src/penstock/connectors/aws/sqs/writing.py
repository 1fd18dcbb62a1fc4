"""Messages on their way to a queue."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.aws.sqs.queue import Queue
from penstock.sdk import Failure, Permanent, Receipt, Rejected, Transient, Writer

if TYPE_CHECKING:
    from penstock.connectors.aws.sqs.sink import SqsSinkConfig

MOST = 10
"""The most messages of one request."""
PAUSE = 0.1
LONGEST_PAUSE = 5.0

Entry = dict[str, Any]


class SqsWriter(Writer):
    """Sends the rows that it is given before it takes more."""

    def __init__(self, queue: Queue, config: SqsSinkConfig) -> None:
        self._queue, self._config = queue, config
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        assert payloads is not None
        refused: dict[int, Rejected] = {}
        entries: list[Entry] = []
        for at, made in enumerate(self._entries(rows, payloads.to_pylist())):
            if isinstance(made, Rejected):
                refused[at] = made
            else:
                entries.append({"Id": str(at), **made})
        for first in range(0, len(entries), MOST):
            refused |= self._send(entries[first : first + MOST])
        self._count += rows.num_rows - len(refused)
        return [Failure(at, refused[at]) for at in sorted(refused)]

    def commit(self) -> Receipt:
        return {"messages": self._count}

    def _entries(
        self, rows: pa.RecordBatch, payloads: Sequence[bytes | None]
    ) -> Iterator[Entry | Rejected]:
        config = self._config
        fixed = {} if config.delay is None else {"DelaySeconds": round(config.delay)}
        named = {"MessageGroupId": config.group, "MessageDeduplicationId": config.deduplication_id}
        filled = {name: text.fill(rows) for name, text in named.items() if text is not None}
        attributes = {name: text.fill(rows) for name, text in config.attributes.items()}
        for at, payload in enumerate(payloads):
            own = {name: texts[at] for name, texts in filled.items()}
            missing = [name for name, text in own.items() if not text]
            try:
                body = (payload or b"").decode()
            except UnicodeDecodeError:
                yield Rejected("the payload is no text, and SQS takes nothing else", code="binary")
                continue
            if not body or missing:
                what = missing[0] if missing else "body"
                yield Rejected(f"the message's {what} is null or empty", code="empty")
                continue
            given = {n: _text(texts[at]) for n, texts in attributes.items() if texts[at]}
            yield {"MessageBody": body, **own, **fixed, "MessageAttributes": given}

    def _send(self, entries: Sequence[Entry]) -> dict[int, Rejected]:
        """Returns when each was taken or refused; those refused by their numbers."""
        refused: dict[int, Rejected] = {}
        until, pause = time.monotonic() + self._config.retry, PAUSE
        while entries:
            try:
                answer = self._queue.call("send_message_batch", Entries=entries)
            except Permanent as error:
                if error.code != "refused":
                    raise
                if len(entries) == 1:
                    return {**refused, int(entries[0]["Id"]): _refusal(error.message)}
                half = len(entries) // 2
                return {**refused, **self._send(entries[:half]), **self._send(entries[half:])}
            failed = {each["Id"]: each for each in answer.get("Failed", ())}
            for number, each in failed.items():
                if each["SenderFault"]:
                    refused[int(number)] = _refusal(f"{each.get('Message')} ({each['Code']})")
            entries = [e for e in entries if e["Id"] in failed and int(e["Id"]) not in refused]
            if entries and time.monotonic() > until:
                raise Transient(
                    f"SQS could not take {len(entries)} of the messages", code="busy",
                    hint="retry says how long they are sent again",
                )  # fmt: skip
            if entries:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        return refused


def _text(value: str | None) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


def _refusal(why: str) -> Rejected:
    return Rejected(f"the queue refuses it: {why}", code="refused")

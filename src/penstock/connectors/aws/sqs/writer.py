"""Writes messages to an SQS queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.aws.sqs.config import SqsSinkConfig
from penstock.connectors.aws.writer import BatchWriter, Outcome, Retryable
from penstock.sdk import Rejected
from penstock.sdk.aws.queue import MAX_MESSAGES, Queue

Entry = dict[str, Any]


class SqsWriter(BatchWriter[Entry]):
    """Writes messages with SendMessageBatch."""

    max_records, max_size = MAX_MESSAGES, 1 << 20
    service = "SQS"

    def __init__(self, queue: Queue, config: SqsSinkConfig) -> None:
        super().__init__(config.retry)
        self._queue, self._config = queue, config

    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterator[Entry | Rejected]:
        config = self._config
        delay = {} if config.delay is None else {"DelaySeconds": round(config.delay)}
        templates = {
            "MessageGroupId": config.message_group,
            "MessageDeduplicationId": config.deduplication_id,
        }
        texts = {
            name: template.render(rows)
            for name, template in templates.items()
            if template is not None
        }
        headers = {name: template.render(rows) for name, template in config.headers.items()}
        for index, payload in enumerate(payloads.to_pylist()):
            ids = {name: values[index] for name, values in texts.items()}
            empty = [name for name, text in ids.items() if not text]
            try:
                body = (payload or b"").decode()
            except UnicodeDecodeError:
                yield Rejected("expected a payload in UTF-8, as SQS requires", code="not-utf8")
                continue
            if not body or empty:
                name = empty[0] if empty else "body"
                yield Rejected(f"the message's {name} is null or empty", code="no-value")
                continue
            attributes = {
                name: {"DataType": "String", "StringValue": values[index]}
                for name, values in headers.items()
                if values[index]
            }
            yield {"MessageBody": body, **ids, **delay, "MessageAttributes": attributes}

    def size(self, entry: Entry) -> int:
        attributes = entry["MessageAttributes"].items()
        return len(entry["MessageBody"].encode()) + sum(
            len(name.encode()) + len("String") + len(attribute["StringValue"].encode())
            for name, attribute in attributes
        )

    def put(self, entries: Sequence[Entry]) -> list[Outcome]:
        numbered = [{"Id": str(index), **entry} for index, entry in enumerate(entries)]
        response = self._queue.call("send_message_batch", Entries=numbered)
        failed = {int(failure["Id"]): failure for failure in response.get("Failed", ())}
        return [_outcome(failed.get(index)) for index in range(len(entries))]


def _outcome(failure: dict[str, Any] | None) -> Outcome:
    if failure is None:
        return None
    reason = f"{failure.get('Message')} ({failure['Code']})"
    if failure["SenderFault"]:
        return Rejected(f"the queue rejected the message: {reason}", code="rejected")
    return Retryable(reason)

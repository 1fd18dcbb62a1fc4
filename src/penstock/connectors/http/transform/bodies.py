"""Bodies of the HTTP transform: rows as messages, and messages of responses as results."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.connectors.http.client import Response
from penstock.connectors.http.framing import resolve_pointer, split_body
from penstock.connectors.http.transform.config import HttpTransformConfig
from penstock.sdk import DecodeError, Format, RecordError
from penstock.sdk.columns.row_json import row_payload, row_text
from penstock.sdk.columns.template import Template


class Result(NamedTuple):
    """A result in a response: a payload, and with an envelope its operation, if it has one."""

    payload: bytes
    operation: str | None = None


def encode_rows(
    config: HttpTransformConfig, format_: Format[Any], rows: pa.RecordBatch, operation: str | None
) -> tuple[dict[int, bytes], dict[int, RecordError]]:
    """Returns the messages of rows by index, and the errors of rows that cannot be encoded.

    `operation` is the operation column of changes.
    """
    if config.method in ("GET", "DELETE"):
        return dict.fromkeys(range(rows.num_rows), b""), {}
    if config.body is not None:
        return {i: _filled(config.body, rows, i) for i in range(rows.num_rows)}, {}
    in_envelope = config.payload_version == 1
    names = config.columns or [
        name for name in rows.schema.names if not (in_envelope and name == operation)
    ]
    payloads, index, failures = format_.encode(rows.select(names))
    numbers = range(rows.num_rows) if index is None else index.to_pylist()
    messages = dict(zip(numbers, payloads.to_pylist(), strict=True))
    if in_envelope:
        codes = None if operation is None else rows.column(operation).to_pylist()
        messages = {
            number: _enclosed(message, codes[number] if codes else "i")
            for number, message in messages.items()
        }
    return messages, {failure.index: failure.error for failure in failures}


def _filled(template: Template, rows: pa.RecordBatch, index: int) -> bytes:
    """Returns the text of a template with the values of a row as JSON."""
    values = json.loads(row_payload(rows.select(sorted(template.columns)), index))
    texts = [
        text + ("" if column is None else row_text(values[column]))
        for text, column in template.parts
    ]
    return "".join(texts).encode()


def _enclosed(message: bytes, operation: str) -> bytes:
    return b'{"metadata":{"op":%b},"data":%b}' % (json.dumps(operation).encode(), message)


def read_results(config: HttpTransformConfig, response: Response) -> list[Result]:
    """Returns the results of a response. Raises DecodeError for a body without them."""
    try:
        if config.framing == "single":
            messages = [bytes(_at(response.body, config.pointer))]
        else:
            messages = split_body(response.body, config.framing, config.pointer)
        read = _opened if config.payload_version == 1 else Result
        return [read(message) for message in messages]
    except ValueError as error:
        raise DecodeError(f"not JSON: {error}", code="not-json") from None


def _opened(message: bytes) -> Result:
    """Returns the result in an envelope."""
    operation = resolve_pointer(message, "/metadata/op")
    value = None if operation is None else json.loads(bytes(operation))
    return Result(bytes(_at(message, "/data")), value if isinstance(value, str) else None)


def _at(text: bytes, pointer: str) -> bytes:
    found = resolve_pointer(text, pointer)
    if found is None:
        raise DecodeError(f"expected a value at {pointer}", code="no-value")
    return bytes(found)

"""States of handlers as bytes: plain values as JSON, record batches as Arrow streams in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

_BATCH, _ARRAY = "arrow", "array"


def encode(state: Mapping[str, Any]) -> bytes:
    """Returns a state of numbers, texts, lists, maps, arrays of numpy and record batches."""
    return json.dumps(dict(state), default=_encode_value).encode()


def decode(state: bytes) -> dict[str, Any]:
    """Returns the state that `encode` has stored."""
    values: dict[str, Any] = json.loads(state, object_hook=_decode_value)
    return values


def _encode_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {_ARRAY: _text(pa.record_batch([pa.array(value)], ["values"]))}
    return {_BATCH: _text(value)}


def _text(batch: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue()).decode()


def _decode_value(value: dict[str, Any]) -> Any:
    if value.keys() not in ({_BATCH}, {_ARRAY}):
        return value
    ((kind, text),) = value.items()
    batch = pa.ipc.open_stream(base64.b64decode(text)).read_next_batch()
    return batch if kind == _BATCH else batch.column(0).to_numpy(zero_copy_only=False).copy()

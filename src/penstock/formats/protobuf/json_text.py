"""Protobuf messages as JSON text, in the JSON mapping of Protobuf."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def json_texts(payloads: pa.BinaryArray, descriptor: Any, *, names_of_enums: bool) -> list[str]:
    """Returns the JSON text of messages, with the names of fields as in the schema.

    No payload may be null. Raises errors of Google's library for an invalid message.
    """
    from google.protobuf.json_format import MessageToJson
    from google.protobuf.message_factory import GetMessageClass

    message = GetMessageClass(descriptor)
    pool = descriptor.file.pool
    return [
        MessageToJson(
            message.FromString(payload),
            preserving_proto_field_name=True,
            use_integers_for_enums=not names_of_enums,
            indent=None,
            ensure_ascii=False,
            descriptor_pool=pool,
        )
        for payload in payloads.to_pylist()
    ]

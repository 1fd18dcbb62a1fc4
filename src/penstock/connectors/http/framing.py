"""Framing of bodies: one message, lines, or the elements of a JSON array."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from penstock.connectors.http.config import Framing
from penstock.sdk import DecodeError

if TYPE_CHECKING:
    from msgspec import Raw

CONTENT_TYPES = {
    "single": "application/json",
    "lines": "application/x-ndjson",
    "array": "application/json",
}
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


def _validate_pointer(text: str) -> str:
    if not _POINTER.fullmatch(text):
        raise ValueError("expected a JSON pointer, such as /data/items")
    return text


Pointer = Annotated[str, AfterValidator(_validate_pointer)]
"""A JSON pointer (RFC 6901), such as `/data/items`."""


def split_body(body: bytes, framing: Framing, pointer: str = "") -> list[bytes]:
    """Returns the messages of a body, byte for byte.

    `pointer` locates the array in the body. Raises DecodeError without an array.
    """
    if framing == "single":
        return [body]
    if framing == "lines":
        return [line for line in body.splitlines() if line.strip()]
    from msgspec import Raw

    try:
        body.decode()
        elements = _decode_json(resolve_pointer(body, pointer) or b"", list[Raw])
    except ValueError as error:
        raise DecodeError(
            f"expected a JSON array at {pointer}" if pointer else "expected a JSON array",
            detail=str(error),
        ) from None
    return [bytes(element) for element in elements]


def join_body(payloads: Sequence[bytes], framing: Framing) -> bytes:
    """Returns a body of messages."""
    if framing == "array":
        return b"[" + b",".join(payloads) + b"]"
    return b"".join(payload + b"\n" for payload in payloads) if framing == "lines" else payloads[0]


def resolve_pointer(body: bytes, pointer: str) -> bytes | Raw | None:
    """Returns the part of a JSON text at a pointer, byte for byte; None if the part is missing.

    Raises ValueError if a value on the path of the pointer is not valid JSON.
    """
    if not pointer:
        return body
    from jsonpointer import JsonPointer

    part: bytes | Raw = body
    for token in JsonPointer(pointer).parts:
        child = _child(part, token)
        if child is None:
            return None
        part = child
    return part


def _child(text: bytes | Raw, token: str) -> Raw | None:
    from msgspec import Raw

    start = bytes(text).lstrip()[:1]
    if start == b"[":
        elements: list[Raw] = _decode_json(text, list[Raw])
        return elements[int(token)] if token.isdecimal() and int(token) < len(elements) else None
    if start == b"{":
        fields: dict[str, Raw] = _decode_json(text, dict[str, Raw])
        return fields.get(token)
    _decode_json(text, Any)
    return None


def _decode_json(text: bytes | Raw, type_: Any) -> Any:
    """Decodes JSON. Raises ValueError for invalid JSON and for a value nested too deeply."""
    from msgspec import json

    try:
        return json.decode(text, type=type_)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None

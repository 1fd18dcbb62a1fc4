"""Several messages in one body: as lines, or as the elements of a JSON array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from penstock.connectors.http.jsontext import elements, part
from penstock.sdk import DecodeError

Framing = Literal["single", "lines", "array"]

TYPES = {"single": "application/json", "lines": "application/x-ndjson", "array": "application/json"}


def divided(body: bytes, framing: Framing, pointer: str = "") -> list[bytes]:
    """The messages in a body, byte for byte; `pointer` says where in it an array is.

    Raises DecodeError if there is no array.
    """
    if framing == "single":
        return [body]
    if framing == "lines":
        return [line for line in body.splitlines() if line.strip()]
    what = f"the body has no JSON array at {pointer}" if pointer else "the body is not a JSON array"
    try:
        return [each.encode() for each in elements(part(body.decode(), pointer) or "")]
    except ValueError as error:
        raise DecodeError(what, detail=str(error)) from None


def joined(payloads: Sequence[bytes], framing: Framing) -> bytes:
    """A body with these messages."""
    if framing == "array":
        return b"[" + b",".join(payloads) + b"]"
    return b"".join(payload + b"\n" for payload in payloads) if framing == "lines" else payloads[0]

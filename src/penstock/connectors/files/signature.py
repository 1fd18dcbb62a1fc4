"""Signatures of compressed files: their first bytes."""

from __future__ import annotations

import re

from penstock.core.errors import DecodeError

NOT_COMPRESSED = "not-compressed"
_SIGNATURES = {
    "gzip": (b"\x1f\x8b",),
    "bz2": (b"BZh",),
    "xz": (b"\xfd7zXZ\0", b"\x5d\0\0"),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))),
    "lz4": (b"\x04\x22\x4d\x18",),
}
"""By codec, the possible first bytes. Zstandard may start with a skippable frame."""


def check_signature(start: bytes, codec: str) -> None:
    """Raises DecodeError if a file that starts with these bytes is not compressed with `codec`.

    A file with less than two bytes is incomplete. Brotli has no signature.
    """
    expected = _SIGNATURES.get(codec)
    if expected is None or len(start) < 2 or not start.strip(b"\0"):
        return
    if any(start.startswith(signature[: len(start)]) for signature in expected):
        return
    found = next((name for name in _SIGNATURES if _has_signature(start, name)), None)
    raise DecodeError(
        f"expected a file compressed with {codec}, found {_describe(start, found)}",
        code=NOT_COMPRESSED,
        hint=f"Rename the file, or set compression: {found or 'none'}.",
    )


def _has_signature(start: bytes, codec: str) -> bool:
    return start.startswith(_SIGNATURES[codec])


def _describe(start: bytes, codec: str | None) -> str:
    if codec is not None:
        return f"one compressed with {codec}"
    is_text = all(byte >= 32 or byte in b"\t\r\n" for byte in start[:100])
    return "uncompressed text" if is_text else "other data"


def check_uncompressed(start: bytes) -> None:
    """Raises DecodeError if a file that starts with these bytes is compressed."""
    codec = next((name for name, magic in _MAGIC.items() if magic.match(start)), None)
    if codec is not None:
        raise DecodeError(
            f"expected an uncompressed file, found one compressed with {codec}",
            code=NOT_COMPRESSED,
            hint=f"Rename the file, or set compression: {codec}.",
        )


_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
}
"""By codec, the first bytes that no file of another kind has."""
SIGNATURE_BYTES = 10

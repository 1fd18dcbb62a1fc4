"""Hashes of texts."""

from __future__ import annotations


def xxhash(text: str | None) -> str | None:
    """Returns the XXH3 hash of 128 bits as 32 hexadecimal digits."""
    from xxhash import xxh3_128_hexdigest

    return None if text is None else str(xxh3_128_hexdigest(text.encode()))


def keccak256(text: str | None) -> str | None:
    """Returns the Keccak hash of 256 bits. A text that begins with 0x has the bytes in digits."""
    from Crypto.Hash import keccak

    if text is None:
        return None
    data = bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()
    return "0x" + str(keccak.new(digest_bits=256, data=data).hexdigest())

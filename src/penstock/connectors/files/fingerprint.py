"""Fingerprints of growing files: hashes of the head, and of the last block before an offset."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import BinaryIO

from penstock.connectors.files.file_range import FileRange

HEAD_BYTES = 256
BLOCK_BYTES = 4096
SHORT = "short"
"""The hash of content that a file lacks."""


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of the content of a file before an offset."""

    head_size: int
    head_hash: str
    block_hash: str


def fingerprint(file: BinaryIO, stop: int) -> Fingerprint:
    """Returns the fingerprint of the content before `stop`."""
    head_size = min(HEAD_BYTES, stop)
    return Fingerprint(head_size, _hash(file, 0, head_size), _hash_block(file, stop))


def head_fingerprint(file: BinaryIO, size: int) -> Fingerprint | None:
    """Returns the fingerprint of the head of a file of `size` bytes of which nothing was read.

    Returns None for an empty file, and for one that was truncated since `size` was found.
    """
    head_size = min(HEAD_BYTES, size)
    head_hash = _hash(file, 0, head_size)
    return Fingerprint(head_size, head_hash, "") if head_size and head_hash != SHORT else None


def continues(file: BinaryIO, range_: FileRange) -> bool:
    """Returns whether a file has the content that was logged up to the end of a range."""
    if _hash(file, 0, range_.head_size) != range_.head_hash:
        return False
    return not range_.block_hash or _hash_block(file, range_.stop or 0) == range_.block_hash


def is_prefix(file: BinaryIO, size: int, longer: BinaryIO) -> bool:
    """Returns whether another file starts with the first `size` bytes of a file.

    Compares the fingerprints.
    """
    return fingerprint(file, size) == fingerprint(longer, size)


def may_be_rotated(original: str, path: str) -> bool:
    """Returns whether rotation may copy a file to a path: `app.log` to `app.log.1.gz`.

    The copy is in the same directory. Its name is longer and starts with the original name up to
    the first dot.
    """
    prefix = rotation_prefix(original)
    longer = len(path) > len(original)
    return longer and path.startswith(prefix) and "/" not in path[len(prefix) :]


def rotation_prefix(path: str) -> str:
    """Returns a path up to the first dot of the name: the start of the paths of its copies."""
    directory, slash, name = path.rpartition("/")
    return directory + slash + name[:1] + name[1:].partition(".")[0]


def possible_prefixes(path: str) -> list[str]:
    """Returns the prefixes that files have of which a path may be a copy."""
    start = path.rpartition("/")[0]
    return [path[:length] for length in range(len(start) + 1, len(path))]


def _hash_block(file: BinaryIO, stop: int) -> str:
    start = max(0, stop - BLOCK_BYTES)
    return _hash(file, start, stop - start)


def _hash(file: BinaryIO, start: int, size: int) -> str:
    file.seek(start)
    data = file.read(size)
    while data and len(data) < size and (more := file.read(size - len(data))):
        data += more
    return hashlib.blake2b(data, digest_size=8).hexdigest() if len(data) == size else SHORT

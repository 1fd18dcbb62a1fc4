"""Random texts, vectorised over row numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.kit.random import Integers, Stream

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_BYTES = np.arange(256)
_ANY = _LETTERS[_BYTES % 26]
_SPACED = np.where(_BYTES % 13, _LETTERS[(_BYTES - _BYTES // 13) % 26], np.uint8(ord(" ")))
_SHORTEST = 3


def pick(words: list[str], rows: Integers, stream: Stream) -> pa.Array:
    """One of the words for each row."""
    return pa.array(words).take(pa.array(stream.integers(rows, 0, len(words) - 1)))


def phrase(rows: Integers, stream: Stream, most: int) -> pa.Array:
    """Letters with a space now and then, three to fewer than `most` before they are trimmed."""
    return pc.ascii_trim(_short(rows, stream, most), " ")


def slug(rows: Integers, stream: Stream, most: int) -> pa.Array:
    """The same with underscores, which are not trimmed."""
    return pc.replace_substring(_short(rows, stream, most), " ", "_")


def filling(rows: Integers, stream: Stream, size: Integers, average: int) -> pa.Array:
    """Letters that bring rows of these sizes to an average size, give or take a fifth of them."""
    missing = np.maximum(average - size, 0)
    spread = np.round(missing * 0.2).astype(np.int64)
    drawn = (stream.child("length").uniform(rows) * (2 * spread)).astype(np.int64)
    return _text(rows, stream, missing - spread + drawn, _ANY)


def length(*texts: pa.Array) -> Integers:
    """The bytes of each row's texts together."""
    lengths: Integers = np.sum([pc.binary_length(each).to_numpy() for each in texts], axis=0)
    return lengths.astype(np.int64)


def _short(rows: Integers, stream: Stream, most: int) -> pa.Array:
    lengths = stream.child("length").integers(rows, _SHORTEST, most - 1)
    return _text(rows, stream, lengths, _SPACED)


def _text(rows: Integers, stream: Stream, lengths: Integers, alphabet: np.ndarray) -> pa.Array:
    wide = -(-int(lengths.max(initial=0)) // 8)
    raw = np.empty((len(rows), wide * 8), np.uint8)
    for word in range(wide):
        raw[:, word * 8 : word * 8 + 8] = (
            stream.child(word).words(rows).view(np.uint8).reshape(-1, 8)
        )
    kept = alphabet[raw[np.arange(wide * 8) < lengths[:, None]]]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(kept)]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)

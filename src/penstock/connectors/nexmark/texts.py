"""Random texts as functions of row numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sdk.synthetic.random import Integers, Stream

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
_BYTES = np.arange(256)
_ANY = _LETTERS[_BYTES % 26]
_SPACED = np.where(_BYTES % 13, _LETTERS[(_BYTES - _BYTES // 13) % 26], np.uint8(ord(" ")))
_MIN_LENGTH = 3


def pick(words: list[str], rows: Integers, stream: Stream) -> pa.Array:
    """Returns a random word for each row."""
    return pa.array(words).take(pa.array(stream.integers(rows, 0, len(words) - 1)))


def phrase(rows: Integers, stream: Stream, max_length: int) -> pa.Array:
    """Returns letters and spaces, from 3 to `max_length` - 1 characters before trimming."""
    return pc.ascii_trim(_random_text(rows, stream, max_length), " ")


def slug(rows: Integers, stream: Stream, max_length: int) -> pa.Array:
    """Returns letters and underscores, from 3 to `max_length` - 1 characters."""
    return pc.replace_substring(_random_text(rows, stream, max_length), " ", "_")


def padding(rows: Integers, stream: Stream, size: Integers, average: int) -> pa.Array:
    """Returns letters that extend rows of these sizes to an average size, within 20 %."""
    missing = np.maximum(average - size, 0)
    spread = np.round(missing * 0.2).astype(np.int64)
    extra = (stream.child("length").uniform(rows) * (2 * spread)).astype(np.int64)
    return _text(rows, stream, missing - spread + extra, _ANY)


def text_length(*texts: pa.Array) -> Integers:
    """Returns the total bytes of the texts of each row."""
    lengths: Integers = np.sum([pc.binary_length(text).to_numpy() for text in texts], axis=0)
    return lengths.astype(np.int64)


def _random_text(rows: Integers, stream: Stream, max_length: int) -> pa.Array:
    lengths = stream.child("length").integers(rows, _MIN_LENGTH, max_length - 1)
    return _text(rows, stream, lengths, _SPACED)


def _text(rows: Integers, stream: Stream, lengths: Integers, alphabet: np.ndarray) -> pa.Array:
    word_count = -(-int(lengths.max(initial=0)) // 8)
    raw = np.empty((len(rows), word_count * 8), np.uint8)
    for word in range(word_count):
        raw[:, word * 8 : word * 8 + 8] = (
            stream.child(word).words(rows).view(np.uint8).reshape(-1, 8)
        )
    characters = alphabet[raw[np.arange(word_count * 8) < lengths[:, None]]]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(characters)]
    return pa.Array.from_buffers(pa.string(), len(rows), buffers)

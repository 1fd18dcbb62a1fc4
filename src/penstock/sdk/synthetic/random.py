"""Deterministic random numbers: a function of a stream and a position."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class Stream:
    """An infinite sequence of random 64-bit words (splitmix64 of a key and the position)."""

    seed: int
    name: str

    def child(self, name: str | int) -> Stream:
        """Returns an independent stream."""
        return Stream(self.seed, f"{self.name}/{name}")

    def words(self, positions: Integers) -> Words:
        """Returns the words at these positions."""
        digest = hashlib.blake2b(f"{self.seed}:{self.name}".encode(), digest_size=8).digest()
        word: Words = positions.astype(np.uint64)
        word *= _GOLDEN
        word += np.frombuffer(digest, np.uint64)[0]
        word ^= word >> np.uint64(30)
        word *= _MIX[0]
        word ^= word >> np.uint64(27)
        word *= _MIX[1]
        word ^= word >> np.uint64(31)
        return word

    def uniform(self, positions: Integers) -> Floats:
        """Returns uniform numbers in [0, 1)."""
        return (self.words(positions) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, positions: Integers, low: int, high: int) -> Integers:
        """Returns uniform integers from `low` to `high`, inclusive."""
        span = high - low + 1
        numbers: Integers
        if span >= 2**64:
            numbers = self.words(positions).view(np.int64)
        else:
            offset = self.words(positions) % np.uint64(span)
            numbers = (offset + np.uint64(low % 2**64)).view(np.int64)
        return numbers

    def normal(self, positions: Integers, mean: float, deviation: float) -> Floats:
        """Returns normally distributed numbers."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(positions)))
        angle = 2.0 * np.pi * self.child("angle").uniform(positions)
        numbers: Floats = mean + deviation * radius * np.cos(angle)
        return numbers

"""Random numbers by position: the number at `n` of a stream depends on nothing but both."""

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
    """An endless column of random 64-bit words (splitmix64 of a key and the position)."""

    seed: int
    name: str

    def child(self, name: str | int) -> Stream:
        """Another stream, independent of this one."""
        return Stream(self.seed, f"{self.name}/{name}")

    def words(self, at: Integers) -> Words:
        """The words at these positions."""
        digest = hashlib.blake2b(f"{self.seed}:{self.name}".encode(), digest_size=8).digest()
        word: Words = at.astype(np.uint64)
        word *= _GOLDEN
        word += np.frombuffer(digest, np.uint64)[0]
        word ^= word >> np.uint64(30)
        word *= _MIX[0]
        word ^= word >> np.uint64(27)
        word *= _MIX[1]
        word ^= word >> np.uint64(31)
        return word

    def uniform(self, at: Integers) -> Floats:
        """Numbers from 0 up to, but without, 1."""
        return (self.words(at) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, at: Integers, low: int, high: int) -> Integers:
        """Whole numbers from `low` to `high`, both included."""
        span = high - low + 1
        picked: Integers
        if span >= 2**64:
            picked = self.words(at).view(np.int64)
        else:
            offset = self.words(at) % np.uint64(span)
            picked = (offset + np.uint64(low % 2**64)).view(np.int64)
        return picked

    def normal(self, at: Integers, mean: float, deviation: float) -> Floats:
        """Numbers of a normal distribution."""
        radius = np.sqrt(-2.0 * np.log1p(-self.uniform(at)))
        angle = 2.0 * np.pi * self.child("angle").uniform(at)
        drawn: Floats = mean + deviation * radius * np.cos(angle)
        return drawn

"""Input and output of a pipeline, for the condition `no_output`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Output:
    """The rows that were read and written so far, and the times of the input since the last output.

    `first` and `last` are None while no row was read since then.
    """

    read: int
    written: int
    first: float | None = None
    last: float | None = None

    def observe(self, at: float, read: int, written: int, window: float) -> None:
        """Takes the counts at a time. A pause of the input above the window begins again."""
        if read < self.read or written < self.written:
            self.read = self.written = 0  # another run counts from zero
        if written > self.written:
            self.first = self.last = None
        elif read > self.read:
            if self.last is None or at - self.last > window:
                self.first = at
            self.last = at
        self.read, self.written = read, written

    def lasting(self, at: float, window: float) -> float | None:
        """Returns the time that input has arrived without output; None if it does not arrive."""
        if self.first is None or self.last is None or at - self.last > window:
            return None
        return self.last - self.first

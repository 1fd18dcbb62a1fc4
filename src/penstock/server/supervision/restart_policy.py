"""Restart policy: when a run starts again after an end without a stop."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core.retry import Backoff

FINAL_EXIT_CODES = frozenset({2, 4})
"""Invalid files and an unusable state, which remain after a restart."""
CRASH_LOOP_FAILURES = 5
CRASH_LOOP_SECONDS = 600.0
_BACKOFF = Backoff.model_validate({"backoff": "2s", "max_backoff": "2m"})


@dataclass
class Failures:
    """Failures of one pipeline since a user last started it. Times are monotonic seconds."""

    times: list[float] = field(default_factory=list)
    next_start: float = 0.0
    is_final: bool = False
    rejections: int = 0
    """The starts in succession that another run of the pipeline has rejected."""

    def add(self, now: float, exit_code: int | None) -> None:
        """Records a failed run, and decides when the next one starts.

        `exit_code` is None for a process that was killed.
        """
        self.rejections = 0
        recent = [time for time in self.times if now - time < CRASH_LOOP_SECONDS]
        self.times = [*recent, now]
        self.is_final = exit_code in FINAL_EXIT_CODES
        self.next_start = now + _BACKOFF.delay(len(self.times))

    def add_rejection(self, now: float) -> None:
        """Records a start that another run of the pipeline has rejected. It is repeated."""
        self.rejections += 1
        self.next_start = now + _BACKOFF.delay(self.rejections)

    @property
    def any(self) -> bool:
        """Whether a start or a run has failed."""
        return bool(self.times or self.rejections)

    @property
    def crash_looping(self) -> bool:
        """Whether there were five failures within ten minutes, after which no run starts."""
        return len(self.times) >= CRASH_LOOP_FAILURES

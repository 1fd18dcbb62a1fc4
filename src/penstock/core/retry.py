"""Retry of operations after transient errors, with backoff."""

from __future__ import annotations

import random

from pydantic import BaseModel, ConfigDict, Field

from penstock.core.units import PositiveDuration


class Backoff(BaseModel):
    """Pauses between attempts that grow exponentially."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False
    )

    backoff: PositiveDuration = 0.5
    """The pause after the first failure, doubled after each further failure."""
    max_backoff: PositiveDuration = 30.0
    """The longest pause."""

    def delay(self, failures: int) -> float:
        """Returns the seconds to wait after `failures` failures in a row, with 20 % jitter."""
        exponential = self.backoff * 2.0 ** min(failures - 1, 60)
        return float(min(exponential, self.max_backoff) * random.uniform(0.8, 1.2))


class Retry(Backoff):
    """Retry of operations that fail with a transient error."""

    attempts: int = Field(default=5, ge=1)
    """The number of attempts in all."""

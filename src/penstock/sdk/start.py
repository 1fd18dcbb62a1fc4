"""Start positions: the `start` option of sources that keep their records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self

from pydantic import model_validator

from penstock.sdk.config import Config


class StartAt(Config):
    """Base of start positions other than `earliest` and `latest`.

    A subclass adds an option for an offset of its system. Exactly one option must be set.
    """

    timestamp: datetime | None = None
    """Start at the first record that is not older. A time without a zone is UTC."""

    @model_validator(mode="after")
    def _check_one_option(self) -> Self:
        names = tuple(type(self).model_fields)
        if sum(getattr(self, name) is not None for name in names) != 1:
            raise ValueError(f"expected {' or '.join(names)}")
        return self

    @property
    def time(self) -> datetime | None:
        """`timestamp` with a time zone."""
        if self.timestamp is None or self.timestamp.tzinfo is not None:
            return self.timestamp
        return self.timestamp.replace(tzinfo=UTC)

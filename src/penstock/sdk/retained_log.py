"""The part of its log that a system retains for a source: from the place of the source on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RetainedLog:
    """The log after the last change of a source that is on disk. None is an unknown value."""

    size: int | None = None
    """The bytes of this part."""
    seconds: int | None = None
    """The seconds from the first entry of this part to the newest one."""
    share: float | None = None
    """The time of this part as a share of that of the whole log. Changes are lost beyond 1."""
